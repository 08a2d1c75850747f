"""The figures of docs/planning.md, from the sweeps in bench/results/planning and the shipped table of times.

Run: python bench/planning_figures.py (needs the extra `plot`); the page has the commands of the sweeps.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replaylife.kernels.tiles import Key, table

ROOT = Path(__file__).parents[1]
RESULTS, FIGURES = ROOT / "bench" / "results" / "planning", ROOT / "docs" / "figures"
RINGS = (1, 2, 4, 8, 16, 32, 64)


def results(name: str) -> list[dict[str, Any]]:
    lines = (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[1:]]


def finish(axes: Axes) -> None:
    points = results("finish")
    for policy in ("truncate", "fold"):
        chosen = sorted((p["point"]["ring"], p) for p in points if p["point"]["finish"] == policy)  # type: ignore[type-var]
        rings = [ring for ring, _ in chosen]
        again = [p["totals"]["again_truncated"] / p["totals"]["prompt"] for _, p in chosen]
        axes.plot(rings, [100 * share for share in again], marker="o", label=f"finish: {policy}")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("L, records of a ring")
    axes.set_ylabel("prompt tokens prefilled again, %")


def interval(axes: Axes) -> None:
    points = results("interval")
    for strategy in ("no_buffer", "extra_buffer"):
        chosen = [p for p in points if p["point"]["strategy"] == strategy]
        intervals = [p["point"]["track_interval"] for p in chosen]
        axes.plot(intervals, [100 * p["totals"]["hit_rate"] for p in chosen], marker="o", label=f"{strategy}")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("track interval, tokens")
    axes.set_ylabel("hit rate, % of prompt tokens")


def ring(axes: Axes) -> None:
    for gate, state in (("gdn", "fp32"), ("gdn", "bf16"), ("kda", "fp32"), ("kda", "bf16")):
        speedups = [
            next(t.speedup for t in table().exact_times(Key(gate, state, length)) if t.rows == 256)  # type: ignore[arg-type]
            for length in RINGS
        ]
        axes.plot(RINGS, speedups, marker="o", label=f"{gate}, state {state}")
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("L, records of a ring")
    axes.set_ylabel("times as fast as packed decode, 256 rows")


def main() -> None:
    rcParams["svg.hashsalt"] = "replaylife"  # the same figure is the same file
    for name, plot in (("finish", finish), ("interval", interval), ("ring", ring)):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        plot(axes)
        axes.grid(alpha=0.3)
        axes.legend()
        figure.savefig(FIGURES / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
