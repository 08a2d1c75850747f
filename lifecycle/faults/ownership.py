"""Faults in who owns a slot."""

from __future__ import annotations

from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.planned import PlannedCopy, PlannedRow
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.store import StateStore
from replaylife.lifecycle.strategies import ExtraBuffer, ExtraBufferLazy, NoBuffer


class _FreeTwice(StateStore):
    def free_slot(self, slot: int, reason: str) -> None:
        super().free_slot(slot, reason)
        self.pool.free(slot)


class _SlotLeaks(StateStore):
    def give_up_slot(self, request: Request, reason: str) -> None:  # noqa: ARG002
        request.slot = request.pending_cow = None


class _RejectionForgetsSlot(ReferenceEngine):
    def _reject(self, request: Request, reason: str) -> None:
        request.slot = None
        super()._reject(request, reason)


class _PlaceholderFreed(ExtraBufferLazy):
    def close(self, request: Request) -> None:
        if len(request.track_slots) == 1:
            self.store.pool.free(-1)  # stands for the second slot as long as none is taken
        super().close(request)


class _PendingSnapshotForgotten(NoBuffer):
    def discard(self, row: PlannedRow) -> None:
        row.copies.clear()


class _ExchangeAssumed(ExtraBuffer):
    def _donate_stamped(self, request: Request, copy: PlannedCopy) -> None:
        if self.store.pool.allocator.num_free or self.store.has_state(request, copy.length):
            super()._donate_stamped(request, copy)
        else:
            self.store.publish(request, copy, "chunk")


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
    damage="a leak: no state is wrong, there is room for one fewer",
)

SLOT_LEAKS_ON_REJECTION = Fault(
    id="slot-leaks-on-rejection",
    title="A rejected admission keeps the slot that it had taken",
    source="https://github.com/sgl-project/sglang/pull/16067",
    mechanism=(
        "A slot is taken before it is known whether the request can be admitted. When it cannot, the request "
        "goes back to the queue without the slot, which is neither free nor cached nor held."
    ),
    right_value="free + cached + held is the size of the pool",
    scenario="slot-leaks-on-rejection",
    mixin=_RejectionForgetsSlot,
    ledger=("slot-has-one-owner", "slots-conserved"),
    numeric=(),
    damage="a leak: no state is wrong, there is room for one fewer",
)

SENTINEL_FREED = Fault(
    id="sentinel-freed",
    title="The placeholder of a track slot that was never taken is freed",
    source="https://github.com/sgl-project/sglang/pull/40044",
    mechanism=(
        "The second entry of a lazy pair of track slots is -1 until a slot is taken for it. At the end both "
        "entries are freed: the free list has one slot more than there are, and can hand out the index -1."
    ),
    right_value="an entry without a slot is passed over",
    scenario="sentinel-freed",
    mixin=_PlaceholderFreed,
    ledger=("slots-conserved",),
    numeric=(),
    damage="an index on the free list: no state is wrong until it is handed out",
)

PENDING_SNAPSHOT_LEAKS = Fault(
    id="pending-snapshot-leaks",
    title="The slot of a snapshot in flight is forgotten when its request ends",
    source="https://github.com/sgl-project/sglang/pull/22542",
    mechanism=(
        "The step that reaches a track point has taken a slot for the snapshot. Its request ends before the "
        "step has committed, so that the snapshot is neither published nor given back."
    ),
    right_value="the slot is back on the free list, once",
    scenario="pending-snapshot-leaks",
    mixin=_PendingSnapshotForgotten,
    ledger=("slot-has-one-owner", "slots-conserved"),
    numeric=(),
    damage="a leak: no state is wrong, there is room for one fewer",
)

DONATION_WITHOUT_EXCHANGE = Fault(
    id="donation-without-exchange",
    title="A track slot is donated although no slot is left in exchange",
    source="https://github.com/sgl-project/sglang/pull/37943",
    mechanism=(
        "The budget has one spare slot per request. A snapshot in flight takes it, and the donation of a "
        "chunk's checkpoint still counts on it: the slot goes to the tree, and the request goes on using it."
    ),
    right_value="no donation; the request keeps its track slot and goes on",
    scenario="donation-without-exchange",
    mixin=_ExchangeAssumed,
    ledger=("slot-has-one-owner",),
    numeric=(),
)
