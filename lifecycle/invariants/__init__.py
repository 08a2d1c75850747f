"""The invariants: what must be true of every engine after every action."""

from __future__ import annotations

from collections.abc import Iterable

from replaylife.lifecycle.invariants.base import Invariant
from replaylife.lifecycle.invariants.copies import CowOnce, CowSourceFolded, CowSourcePinned
from replaylife.lifecycle.invariants.cursor import (
    CursorAdvancesOnce,
    CursorInRange,
    CursorResetOnReuse,
    TrackedMeansFolded,
)
from replaylife.lifecycle.invariants.numeric import StateMatchesOracle, TensorsTestify, WarmEqualsCold
from replaylife.lifecycle.invariants.positions import (
    ComponentsAgree,
    KeyMatchesState,
    LiveStateComplete,
    RingOwned,
)
from replaylife.lifecycle.invariants.publishing import (
    CheckpointImmutable,
    CheckpointOnGrid,
    PaddingInert,
    StampIsTrue,
    WrittenBeforePublished,
)
from replaylife.lifecycle.invariants.slots import SlotHasOneOwner, SlotsConserved
from replaylife.lifecycle.invariants.tree import (
    LockedSurvives,
    LocksBalanced,
    RecencyFollowsUse,
    TreeWellFormed,
)
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import Transition, Violation

INVARIANTS: dict[str, type[Invariant]] = {
    kind.id: kind
    for kind in (
        KeyMatchesState,
        ComponentsAgree,
        LiveStateComplete,
        RingOwned,
        SlotHasOneOwner,
        SlotsConserved,
        CowSourceFolded,
        CowSourcePinned,
        CowOnce,
        CursorInRange,
        CursorResetOnReuse,
        CursorAdvancesOnce,
        TrackedMeansFolded,
        WrittenBeforePublished,
        CheckpointImmutable,
        CheckpointOnGrid,
        StampIsTrue,
        PaddingInert,
        LocksBalanced,
        LockedSurvives,
        RecencyFollowsUse,
        TreeWellFormed,
        StateMatchesOracle,
        WarmEqualsCold,
        TensorsTestify,
    )
}


class Checker:
    """All invariants that apply to one engine. Collects every violation; never stops at the first."""

    def __init__(self, capabilities: Capabilities) -> None:
        kinds = INVARIANTS.values()
        self.invariants = [made for made in (kind() for kind in kinds) if made.applies_to(capabilities)]

    def check(self, transition: Transition) -> tuple[Violation, ...]:
        """Return every violation of one transition."""
        return tuple(self._all(transition))

    def _all(self, transition: Transition) -> Iterable[Violation]:
        for invariant in self.invariants:
            yield from invariant.violations(transition)


__all__ = ["INVARIANTS", "Checker", "Invariant"]
