"""Faults in who owns a slot."""

from __future__ import annotations

from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.store import StateStore


class _FreeTwice(StateStore):
    def free_slot(self, slot: int, reason: str) -> None:
        super().free_slot(slot, reason)
        self.pool.free(slot)


class _SlotLeaks(StateStore):
    def give_up_slot(self, request: Request, reason: str) -> None:  # noqa: ARG002
        request.slot = request.pending_cow = None


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

SLOT_LEAKS_ON_ABORT = Fault(
    id="slot-leaks-on-abort",
    title="An aborted request's slot returns to nobody",
    source="https://github.com/sgl-project/sglang/pull/12693",
    mechanism=(
        "The request's record is dropped between match and forward and its slot with it: each abort makes "
        "the pool one slot smaller."
    ),
    right_value="the slot is back on the free list",
    scenario="slot-leaks-on-abort",
    mixin=_SlotLeaks,
    ledger=("slot-has-one-owner", "slots-conserved"),
    numeric=(),
)
