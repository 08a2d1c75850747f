"""Faults in moving the ring's cursor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from replaylife.lifecycle.batch import Row
from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.planner import Planner
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.stepper import Stepper
from replaylife.lifecycle.store import StateStore
from replaylife.pool import MambaPool


class _AdvancePerLayer(MambaPool):
    def advance(self, slots: Iterable[int]) -> None:
        due = list(slots)
        for _ in range(self.shape.layers):
            super().advance(due)


class _CursorSurvivesReuse(MambaPool):
    def alloc(self) -> int | None:
        slot = self.allocator.allocate()
        if slot is not None:
            self.touched.add(slot)
        return slot


class _RetractKeepsCursor(StateStore):
    def fill(self, request: Request, slot: int, source: int | None) -> None:
        super().fill(request, slot, source)
        for _ in range(self.retracted.get(request.id, 0)):
            self.pool.advance([slot])


class _NoForcedFlush(Planner):
    def force_flush(self, length_after: int) -> bool:  # noqa: ARG002
        return False


class _FlushFakesCursor(Stepper):
    def _fold_due(self, rows: Sequence[Row]) -> None:
        pool, full = self.store.pool, self.store.cache.ring_length
        for row in rows:
            forced = self.planner.force_flush(row.position + 1)
            for _ in range(full - pool.pending(row.slot) if forced else 0):
                pool.advance([row.slot])
        super()._fold_due(rows)


class _OnlyFullRingsFold(Planner):
    def must_fold(self, pending: int, *, forced: bool) -> bool:  # noqa: ARG002
        return super().must_fold(pending, forced=False)


class _FlushBeforeIncrement(Planner):
    def force_flush(self, length_after: int) -> bool:
        return super().force_flush(length_after - 1)


CURSOR_ADVANCES_PER_LAYER = Fault(
    id="cursor-advances-per-layer",
    title="Each layer advances the shared cursor",
    source="https://github.com/sgl-project/sglang/issues/28511",
    mechanism=(
        "One cursor serves all layers of a slot. If every layer advances it, one token moves it by the "
        "number of layers, and reads and folds take ring entries that nobody wrote."
    ),
    right_value="+1 per token, whatever the number of layers",
    scenario="cursor-advances-per-layer",
    mixin=_AdvancePerLayer,
    ledger=("live-state-complete", "ring-owned", "cursor-advances-once"),
    numeric=(),
    damage="the entries between were never written and are still zero, so that they add nothing",
)

CURSOR_SURVIVES_REUSE = Fault(
    id="cursor-survives-reuse",
    title="A recycled slot inherits its last owner's cursor",
    source="https://github.com/NVIDIA/TensorRT-LLM/pull/13453",
    mechanism=(
        "A slot is freed with records in its ring and handed out again without a reset: the new owner's "
        "reads and folds absorb tokens of another request."
    ),
    right_value="write_pos 0 in a slot that leaves the free list",
    scenario="cursor-survives-reuse",
    mixin=_CursorSurvivesReuse,
    ledger=("cursor-reset-on-reuse", "live-state-complete", "ring-owned"),
    numeric=(),
)

RETRACT_KEEPS_CURSOR = Fault(
    id="retract-keeps-cursor",
    title="A retracted request comes back with the cursor of its first life",
    source="https://github.com/vllm-project/vllm/pull/52928",
    mechanism=(
        "Several trackers belong to one ring and must reset together. A request is retracted with records "
        "pending and resumes in a fresh slot, but its count of pending records is kept."
    ),
    right_value="write_pos 0 after the resumed request is admitted",
    scenario="retract-keeps-cursor",
    mixin=_RetractKeepsCursor,
    ledger=("cursor-reset-on-reuse", "ring-owned", "live-state-complete"),
    numeric=(),
)

SKIP_FORCED_FLUSH_AT_TRACK = Fault(
    id="skip-forced-flush-at-track",
    title="A track point in mid-ring is snapshotted without a fold",
    source="https://github.com/sgl-project/sglang/issues/28511",
    mechanism=(
        "A row that reaches a track point must fold what is in its ring before the snapshot is taken. "
        "Without that the snapshot is the last fold under the full length."
    ),
    right_value="fold exactly the records that are there, then snapshot",
    scenario="skip-forced-flush-at-track",
    mixin=_NoForcedFlush,
    ledger=("tracked-means-folded", "cow-source-folded", "key-matches-state"),
    numeric=("state-matches-oracle",),
)

FLUSH_MASK_OFF_BY_ONE = Fault(
    id="flush-mask-off-by-one",
    title="The flush mask is computed from the length before the step",
    source="https://github.com/sgl-project/sglang/pull/29792",
    mechanism=(
        "Flush mask and tracking decision must use the same length. With the mask one token late the row is "
        "tracked unfolded, and folded one step after its snapshot."
    ),
    right_value="both on the length after the step's token",
    scenario="flush-mask-off-by-one",
    mixin=_FlushBeforeIncrement,
    ledger=("tracked-means-folded", "cow-source-folded", "key-matches-state"),
    numeric=("state-matches-oracle",),
)

FORCED_FLUSH_FAKES_CURSOR = Fault(
    id="forced-flush-fakes-cursor",
    title="A forced fold is had by pretending that the ring is full",
    source="https://github.com/sgl-project/sglang/issues/28511",
    mechanism=(
        "A kernel that folds full rings only is made to fold in mid-ring by moving the cursor to its end. "
        "The entries in between are folded too: records of an earlier round, or of the slot's last owner."
    ),
    right_value="fold exactly the 2 records that are there",
    scenario="forced-flush-fakes-cursor",
    mixin=_FlushFakesCursor,
    ledger=(
        "key-matches-state",
        "components-agree",
        "live-state-complete",
        "cursor-advances-once",
        "tracked-means-folded",
    ),
    numeric=("state-matches-oracle",),
)

BLOCK_PUBLISHED_MID_RING = Fault(
    id="block-published-mid-ring",
    title="A block that decoding fills is published while its last tokens are in the ring",
    source="https://github.com/vllm-project/vllm/pull/48018",
    mechanism=(
        "The ring is folded when it is full and at no other time. A block boundary in mid-ring publishes the "
        "state of the last fold under the whole block's hash."
    ),
    right_value="fold at the boundary: block 8, state 8",
    scenario="block-published-mid-ring",
    mixin=_OnlyFullRingsFold,
    ledger=("tracked-means-folded", "cow-source-folded", "key-matches-state"),
    numeric=("state-matches-oracle",),
)
