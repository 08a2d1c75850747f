"""Faults in moving the ring's cursor."""

from __future__ import annotations

from collections.abc import Iterable

from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.planner import Planner
from replaylife.lifecycle.request import Request
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
    ledger=("cursor-reset-on-reuse", "ring-owned"),
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
