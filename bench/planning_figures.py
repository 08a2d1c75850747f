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
from replaylife.kernels.traffic import Traffic
from replaylife.pool import BYTES
from replaylife.pool.traffic import against_ring

ROOT = Path(__file__).parents[1]
RESULTS, FIGURES = ROOT / "bench" / "results" / "planning", ROOT / "docs" / "figures"
RINGS = (1, 2, 4, 8, 16, 32, 64)
ROWS = 256
CONTINUING = 458  # requests of the log that extend an earlier one
Points = list[dict[str, Any]]


def results(name: str) -> Points:
    lines = (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[1:]]


def series(points: Points, axis: str, count: str, **chosen: Any) -> tuple[list[int], list[float]]:
    """The values of one count along one axis, of the points that are as chosen."""
    found = [p for p in points if all(p["point"][name] == value for name, value in chosen.items())]
    found.sort(key=lambda p: p["point"][axis])
    return [p["point"][axis] for p in found], [p["totals"][count] for p in found]


def finish(figure: Figure) -> None:
    axes: Axes = figure.add_subplot()
    points = results("finish")
    rings, again = series(points, "ring", "again_truncated", finish="truncate")
    axes.plot(rings, [n / CONTINUING for n in again], "o-", label="finish: truncate, measured")
    axes.plot(rings, [(ring - 1) / 2 for ring in rings], "k:", label="(L - 1) / 2")
    rings, again = series(points, "ring", "again_truncated", finish="fold")
    axes.plot(rings, [n / CONTINUING for n in again], "s-", label="finish: fold, measured")
    axes.set_xlabel("L, records of a ring")
    axes.set_ylabel("tokens prefilled again a follow-up")
    powers(axes, RINGS[2:])


def interval(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    points = results("interval")
    for strategy, colour in (("no_buffer", "tab:blue"), ("extra_buffer", "tab:orange")):
        chosen = {"strategy": strategy, "finish": "truncate", "ring": 16}
        intervals, rates = series(points, "track_interval", "hit_rate", **chosen)
        left.plot(intervals, [100 * rate for rate in rates], "o-", color=colour, label=strategy)
        _, again = series(points, "track_interval", "again_truncated", **chosen)
        right.plot(intervals, [n / CONTINUING for n in again], "o-", color=colour, label=strategy)
    (ample,) = results("ample")
    left.axhline(
        100 * ample["totals"]["hit_rate"], color="grey", ls="--", label="nothing evicted (16,384 slots)"
    )
    left.set_ylabel("hit rate, % of prompt tokens")
    left.set_ylim(bottom=0)
    right.set_ylabel("tokens prefilled again a follow-up")
    right.set_yscale("log")
    for axes in (left, right):
        axes.set_xlabel("track interval, tokens")
        powers(axes, (64, 256, 1024, 4096))


def ring(figure: Figure) -> None:
    panels = figure.subplots(1, 2, sharey=True)
    for axes, gate, heads in zip(panels, ("gdn", "kda"), (16, 32), strict=True):
        for state, colour in (("fp32", "tab:blue"), ("bf16", "tab:orange")):
            sizes = Traffic(gate, heads, 32, 128, 128, 16, state=BYTES[state])  # type: ignore[arg-type,index]
            moved = [m.packed / m.apart for m in against_ring(sizes, RINGS)]
            axes.plot(RINGS, moved, ":", color=colour, label=f"{state}, by bytes")
            timed = [
                next(t.speedup for t in table().exact_times(Key(gate, state, length)) if t.rows == ROWS)  # type: ignore[arg-type]
                for length in RINGS
            ]
            axes.plot(RINGS, timed, "o-", color=colour, label=f"{state}, measured")
        axes.axhline(1, color="grey", linewidth=0.8)
        axes.set_title(f"{gate.upper()}, {ROWS} rows, {table().measured_on['card']}", fontsize=10)
        axes.set_xlabel("L, records of a ring")
        powers(axes, RINGS)
    panels[0].set_ylabel("times as fast as packed decode")


def powers(axes: Axes, ticks: tuple[int, ...]) -> None:
    """A logarithmic axis with plain numbers."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])


def main() -> None:
    rcParams["svg.hashsalt"] = "replaylife"  # the same figure is the same file
    FIGURES.mkdir(exist_ok=True)
    for name, draw, width in (("finish", finish, 6.4), ("interval", interval, 9.0), ("ring", ring, 9.0)):
        figure = Figure(figsize=(width, 3.6), layout="constrained")
        draw(figure)
        for axes in figure.axes:
            axes.grid(alpha=0.3)
            axes.legend(fontsize=8)
        figure.savefig(FIGURES / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
