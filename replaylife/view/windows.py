"""Which steps of a long trace to show: its beginning and end, and what is around its violations."""

from __future__ import annotations

from collections.abc import Sequence

MAX_STEPS = 2_000
EDGE = 40  # steps kept at either end
BEFORE, AFTER = 120, 40  # steps kept around a violation, if all violations get as many


def windows(first: int, last: int, violating: Sequence[int], limit: int = MAX_STEPS) -> list[range]:
    """Return the steps to show, as ascending ranges that do not touch: all, or at most ``limit``.

    The first and the last violations come first; where there are many, those between give way.
    """
    if last - first + 1 <= limit:
        return [range(first, last + 1)]
    chosen: set[int] = set()
    edge, before, after = min(EDGE, limit // 8), min(BEFORE, limit // 8), min(AFTER, limit // 24)
    edges = [range(first, first + edge), range(last - edge + 1, last + 1)]
    around = [range(max(first, v - before), min(last, v + after) + 1) for v in from_both_ends(violating)]
    for steps in (*edges, *around):
        fresh = [step for step in steps if step not in chosen]
        if len(chosen) + len(fresh) > limit:
            break
        chosen.update(fresh)
    return _ranges(sorted(chosen))


def from_both_ends(steps: Sequence[int]) -> list[int]:
    """Return the first, the last, the second, the last but one, and so on; at most :data:`MAX_STEPS`."""
    order: list[int] = []
    low, high = 0, len(steps) - 1
    while low <= high and len(order) < MAX_STEPS:
        order.append(steps[low])
        if low != high:
            order.append(steps[high])
        low, high = low + 1, high - 1
    return order


def _ranges(steps: Sequence[int]) -> list[range]:
    found: list[range] = []
    for step in steps:
        if found and step == found[-1].stop:
            found[-1] = range(found[-1].start, step + 1)
        else:
            found.append(range(step, step + 1))
    return found


def left_out(first: int, last: int, shown: Sequence[range], violating: Sequence[int]) -> str:
    """Say what a windowed trace leaves out; empty where it leaves out nothing."""
    missing = last - first + 1 - sum(len(steps) for steps in shown)
    if not missing:
        return ""
    hidden = sum(1 for step in violating if not any(step in steps for steps in shown))
    also = f", {hidden:,} of the {len(violating):,} steps with violations among them" if hidden else ""
    total = f"{missing:,} of {last - first + 1:,} steps are left out{also}"
    return f"{total}: shown are both ends and the steps around violations"
