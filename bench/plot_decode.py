"""Draw what bench/decode.py measured: how many times faster than packed decode, by batch. Needs matplotlib.

Run: python bench/plot_decode.py docs/kernels.svg bench/results/h200_decode_*.json
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

SHOWN = {
    "replay (tuned)": ("tab:blue", "o", "replaylife, fp32 ring"),
    "replay (sglang)": ("tab:red", "s", "SGLang, ring as its pool allocates it"),
    "replay (sglang, bf16 ring)": ("tab:orange", "^", "SGLang, bf16 ring"),
}


def main(target: str, *sources: str) -> None:
    mpl.rcParams["svg.hashsalt"] = "replaylife"
    figure, panels = plt.subplots(1, 4, figsize=(13, 3.4), sharey=True)
    rows = [row for source in sources for row in json.loads(Path(source).read_text())["lines"]]
    panel = iter(panels)
    for (gate, state), block in groupby(rows, key=lambda row: (row["gate"], row["state"])):
        axes = next(panel)
        draw(axes, list(block))
        axes.set_title(f"{gate.upper()}, {state} state")
        axes.set_xlabel("batch")
    panels[0].set_ylabel("times faster than packed decode")
    panels[0].legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


def draw(axes, rows) -> None:
    batches = sorted({row["rows"] for row in rows})
    packed = {
        batch: min(r["staggered_us"] for r in rows if r["rows"] == batch and r["name"].startswith("packed"))
        for batch in batches
    }
    for name, (colour, marker, label) in SHOWN.items():
        points = [
            (row["rows"], packed[row["rows"]] / row["staggered_us"]) for row in rows if row["name"] == name
        ]
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, marker=marker, label=label)
    axes.axhline(1.0, color="grey", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_xticks(batches, [str(batch) for batch in batches], fontsize=7)
    axes.set_ylim(0, 2)
    axes.grid(alpha=0.3)


if __name__ == "__main__":
    main(*sys.argv[1:])
