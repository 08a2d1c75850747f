"""The invariants: what must be true of every engine after every action.

A new invariant is a file in this folder and its name in ``FILES``.
"""

from __future__ import annotations

from replaylife.lifecycle.catalogue import classes
from replaylife.lifecycle.invariants.base import Invariant
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import Transition, Violation

FILES = (
    "positions",
    "slots",
    "copies",
    "cursor",
    "speculation",
    "publishing",
    "tree",
    "places",
    "numeric",
    "budget",
)
INVARIANTS: dict[str, type[Invariant]] = {
    kind.id: kind
    for kind in classes(__name__, FILES, Invariant)  # type: ignore[type-abstract]  # its subclasses are meant
}


class Checker:
    """All invariants that apply to one engine. Collects every violation; never stops at the first."""

    def __init__(self, capabilities: Capabilities) -> None:
        kinds = INVARIANTS.values()
        self.invariants = [made for made in (kind() for kind in kinds) if made.applies_to(capabilities)]
        picks = dict.fromkeys(pick for made in self.invariants for pick in made.judges)
        self._picks = [(1 << bit, pick) for bit, pick in enumerate(picks)]
        bits = {pick: bit for bit, pick in self._picks}
        self._asked = [
            (made.violations, made.only_after, sum(bits[pick] for pick in made.judges))
            for made in self.invariants
        ]

    def check(self, transition: Transition) -> tuple[Violation, ...]:
        """Return every violation of one transition."""
        found: list[Violation] = []
        happened = {type(event) for event in transition.events}
        present = 0
        for bit, pick in self._picks:
            if pick(transition):
                present |= bit
        for violations, only_after, judged in self._asked:
            if only_after and happened.isdisjoint(only_after):
                continue
            if not judged or judged & present:
                found += violations(transition)
        return tuple(found)


__all__ = ["INVARIANTS", "Checker", "Invariant"]
