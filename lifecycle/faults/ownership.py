"""Faults in who owns a slot."""

from __future__ import annotations

from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.store import StateStore


class _FreeTwice(StateStore):
    def free_slot(self, slot: int, reason: str) -> None:
        super().free_slot(slot, reason)
        self.pool.free(slot)


FREE_TWICE = Fault(
    id="free-twice",
    title="A donated slot that the tree did not take is freed twice",
    source="https://github.com/sgl-project/sglang/pull/39209",
    mechanism=(
        "When the node already has a state the donated slot is refused, and both the tree and the caller "
        "return it to the free list: the next two requests share one slot."
    ),
    right_value="the refused slot is on the free list exactly once",
    scenario="free-twice",
    mixin=_FreeTwice,
    ledger=("slot-has-one-owner", "slots-conserved"),
    numeric=(),
)
