"""A figure of a sweep. Imports matplotlib: the extra ``plot``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from replaylife.lifecycle.workload.sweep import Played

NUMERIC = ("ring", "track_interval", "slots")


def draw(played: Sequence[Played], axes: Mapping[str, Sequence[Any]], metric: str, path: Path) -> None:
    """Write ``metric`` against the first numeric axis that varies, a line per combination of the others.

    The format follows the ending of ``path``. Raises ``OSError`` where it cannot be written and
    ``ValueError`` for an ending that matplotlib does not know.
    """
    from matplotlib.figure import Figure

    names = [name for name, values in axes.items() if len(set(values)) > 1]
    across = next((name for name in NUMERIC if name in names), names[0] if names else "ring")
    lines: defaultdict[str, list[tuple[Any, float]]] = defaultdict(list)
    for one in played:
        label = ", ".join(f"{name} {one.point[name]}" for name in names if name != across)
        lines[label].append((one.point[across], one.totals[metric]))
    figure = Figure(figsize=(7, 4), layout="constrained")
    plot = figure.add_subplot()
    for label, values in lines.items():
        values.sort(key=lambda pair: pair[0])
        plot.plot([x for x, _ in values], [y for _, y in values], marker="o", label=label or None)
    if across in NUMERIC and all(one.point[across] > 0 for one in played):
        plot.set_xscale("log", base=2)
    plot.set_xlabel(across.replace("_", " "))
    plot.set_ylabel(metric.replace("_", " "))
    plot.grid(alpha=0.3)
    if any(lines):
        plot.legend()
    figure.savefig(path)
