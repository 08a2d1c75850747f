"""Counts how many requests run at once: each needs its slots, whatever the cache does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from replaylife.lifecycle.scenario.errors import Problem

_HELD = {"extra_buffer": 3, "extra_buffer_lazy": 2}


def too_many_at_once(
    slots: int, strategy: str, steps: Sequence[tuple[int, Mapping[str, Any]]]
) -> list[Problem]:
    """Return the admissions, as plain data with lines, that come when requests hold all the slots.

    Those that the scenario expects to be rejected, or tries again, are no mistakes. Slot 0 is reserved; a
    request holds one slot, or as many as its strategy takes at admission.
    """
    serves = (slots - 1) // _HELD.get(strategy, 1)
    running: set[str] = set()
    problems: list[Problem] = []
    for (line, step), rejected in zip(steps, _rejected_after([step for _, step in steps]), strict=True):
        for kind in ("finish", "retract", "abort", "transfer", "arrive"):
            running.discard((step.get(kind) or {}).get("request"))
        name = _admitted(step)
        if name is None or name in rejected:
            continue
        running.add(name)
        if len(running) > serves:
            problems.append(Problem(line, _explain(name, slots, strategy)))
            running.discard(name)
    return problems


def _admitted(step: Mapping[str, Any]) -> Any:
    """Return the request that a step brings in, if it brings one in."""
    return next((step[kind].get("request") for kind in ("admit", "resume", "retry") if step.get(kind)), None)


def _rejected_after(steps: Sequence[Mapping[str, Any]]) -> list[set[str]]:
    """Return for each step whom the steps after it know to be rejected, up to that one's next admission."""
    known: set[str] = set()
    after: list[set[str]] = []
    for step in reversed(steps):
        after.append(set(known))
        known |= set((step.get("expect") or {}).get("rejected") or ())
        known.discard(_admitted(step))
        if step.get("retry"):
            known.add(_admitted(step))
    return after[::-1]


def _explain(name: str, slots: int, strategy: str) -> str:
    held = _HELD.get(strategy, 1)
    serves = (slots - 1) // held
    each = "" if held == 1 else f", {strategy} takes {held} for each"
    return (
        f"{name!r} would be running request number {serves + 1}, cache.slots {slots} serves {serves} "
        f"(slot 0 is reserved{each}); raise slots, end one first, or add "
        f"'expect: {{rejected: [{name}]}}'"
    )
