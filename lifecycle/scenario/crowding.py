"""Counts how many requests run at once: each needs a slot, whatever the cache does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from replaylife.lifecycle.scenario.errors import Problem


def too_many_at_once(slots: int, steps: Sequence[tuple[int, Mapping[str, Any]]]) -> list[Problem]:
    """Return the admissions, as plain data with lines, that come when all slots are held by requests.

    Those that the scenario expects to be rejected are no mistakes. Slot 0 is reserved.
    """
    rejected = {name for _, step in steps for name in (step.get("expect") or {}).get("rejected") or ()}
    running: set[str] = set()
    problems: list[Problem] = []
    for line, step in steps:
        for kind in ("finish", "retract", "abort"):
            running.discard((step.get(kind) or {}).get("request"))
        for kind in ("admit", "resume"):
            name = (step.get(kind) or {}).get("request")
            if name is None or name in rejected:
                continue
            running.add(name)
            if len(running) == slots:
                problems.append(Problem(line, _explain(name, slots)))
                running.discard(name)
    return problems


def _explain(name: str, slots: int) -> str:
    return (
        f"{name!r} would be running request number {slots}, cache.slots {slots} serves {slots - 1} "
        f"(slot 0 is reserved); raise slots, end one first, or add 'expect: {{rejected: [{name}]}}'"
    )
