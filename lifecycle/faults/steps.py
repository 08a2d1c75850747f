"""Faults between the schedule of a step and its commit, and in the rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from replaylife.lifecycle.batch import BatchLayout, Row
from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.planned import PlannedCopy, PlannedRow, PlannedStep
from replaylife.lifecycle.planner import Planner
from replaylife.lifecycle.request import Closing, Request
from replaylife.lifecycle.stepper import Stepper
from replaylife.lifecycle.store import StateStore
from replaylife.lifecycle.strategies import ExtraBuffer
from replaylife.pool import EMPTY


class _PublishedAtSchedule(Stepper):
    def schedule(
        self, decodes: Sequence[Request], chunks: Sequence[tuple[Request, int]], pad_to: int | None = None
    ) -> PlannedStep:
        step = super().schedule(decodes, chunks, pad_to)
        for row in step.rows:
            if not row.decode:
                self._publish(row)
        return step


class _GridFromChunkStart(Planner):
    def checkpoint_in(self, start: int, end: int, *, decode: bool) -> int | None:
        if decode:
            return super().checkpoint_in(start, end, decode=True)
        last = super().checkpoint_in(0, end - start, decode=False)
        return None if last is None else start + last


class _MixedStepDropsCopies(Stepper):
    def _leave(self, row: PlannedRow, copy: PlannedCopy) -> None:
        executing = next(step for step in self.in_flight if row in step.rows)
        if row.decode or not any(other.decode for other in executing.rows):
            super()._leave(row, copy)


class _StampFromNextStep(ExtraBuffer):
    def _stamp(self, request: Request, copy: PlannedCopy) -> None:
        length = min(request.scheduled, len(request.tokens))
        request.stamps[copy.dst] = EMPTY.after(request.tokens[:length])


class _StampKeptInPlace(ExtraBuffer):
    def _next_slot(self, request: Request) -> int:
        slot = request.track_slots.pop(0)
        request.track_slots.append(slot)
        return slot


class _PaddingOnSlotZero(BatchLayout):
    def _padding_slot(self) -> int:
        return 0


class _CursorsStayWithRows(BatchLayout):
    _last: tuple[tuple[str, int], ...] = ()

    def _cursors(self, ordered: Sequence[Row]) -> list[int]:
        before, fresh = self._last, super()._cursors(ordered)
        self._last = tuple((row.request.id, cursor + 1) for row, cursor in zip(ordered, fresh, strict=True))
        moved = len(before) > len(ordered)
        return [cursor for _, cursor in before[: len(ordered)]] if moved else fresh


class _EndsWithStepsInFlight(ReferenceEngine):
    def _close(self, request: Request, how: Closing) -> None:
        request.closing = how
        self._end(request)


class _LiveStateAsBlock(Stepper):
    def _stops(self, row: PlannedRow) -> list[tuple[int, list[PlannedCopy]]]:
        return [(row.end, list(row.copies))]


class _SourceSurvivesRejection(StateStore):
    def fill(self, request: Request, slot: int, source: int | None) -> None:
        super().fill(request, slot, self.rejected.get(request.id, source))


PUBLISH_AT_SCHEDULE = Fault(
    id="publish-at-schedule",
    title="A block is published when its step is scheduled",
    source="https://github.com/vllm-project/vllm/pull/56525",
    mechanism=(
        "The key enters the tree at schedule time. Until the step has run and committed its slot holds what "
        "an earlier owner left, and if the request is aborted it is never written."
    ),
    right_value="publish when the step that wrote the state has committed",
    scenario="publish-at-schedule",
    mixin=_PublishedAtSchedule,
    ledger=("written-before-published", "key-matches-state", "slot-has-one-owner"),
    numeric=("state-matches-oracle",),
    damage="steps run in order, so that a copy runs after the step which the block waits for",
)

GRID_FROM_CHUNK_START = Fault(
    id="grid-from-chunk-start",
    title="Checkpoint depths are counted from the chunk's own start",
    source="https://github.com/sgl-project/sglang/pull/34760",
    mechanism=(
        "A later chunk does not begin on the grid. Counting its checkpoint from its own start puts state and "
        "key on a length that no kernel chunk ends at."
    ),
    right_value="a multiple of the grid from token 0: 16, not 14",
    scenario="grid-from-chunk-start",
    mixin=_GridFromChunkStart,
    ledger=("checkpoint-on-grid",),
    numeric=(),
    damage="state and key agree on 14 tokens; only kernels that work in chunks cannot start there",
)

MIXED_STEP_DROPS_COPY = Fault(
    id="mixed-step-drops-copy",
    title="A chunk that shares its step with decode rows leaves no checkpoint, and is published all the same",
    source="https://github.com/sgl-project/sglang/issues/39342",
    mechanism=(
        "In a mixed step the track write of the prefill rows is skipped. The slot is stamped and donated as "
        "if it had been written; a hit reads what an earlier owner left."
    ),
    right_value="the slot covers 8 tokens, or no node is created",
    scenario="mixed-step-drops-copy",
    mixin=_MixedStepDropsCopies,
    ledger=("key-matches-state",),
    numeric=("state-matches-oracle",),
)

STAMP_FROM_NEXT_STEP = Fault(
    id="stamp-from-next-step",
    title="The stamp is read from a length that the next step has already advanced",
    source="https://github.com/sgl-project/sglang/pull/29792",
    mechanism=(
        "Under overlap the scheduled length belongs to the step after the one being committed. Stamped with "
        "it, a track slot claims a token that its state has not absorbed."
    ),
    right_value="the length of the committed step's own row: 16",
    scenario="stamp-from-next-step",
    mixin=_StampFromNextStep,
    ledger=("stamp-is-true",),
    numeric=(),
)

STAMP_KEPT_IN_PLACE = Fault(
    id="stamp-kept-in-place",
    title="A track slot keeps its stamp while it is overwritten in place",
    source="https://github.com/sgl-project/sglang/pull/26865",
    mechanism=(
        "With no second slot free the only track slot is overwritten. Its old stamp stays until the step "
        "commits, so that a finish in between donates the new state under the old key."
    ),
    right_value="no stamp from schedule to commit",
    scenario="stamp-kept-in-place",
    mixin=_StampKeptInPlace,
    ledger=("stamp-is-true",),
    numeric=(),
)

PADDING_ON_SLOT_ZERO = Fault(
    id="padding-on-slot-zero",
    title="Padding rows are clamped to slot 0",
    source="https://github.com/lightseekorg/tokenspeed/pull/700",
    mechanism=(
        "A padded row's index -1 is clamped to 0 and the kernels write there: whoever owns slot 0 absorbs a "
        "token of nobody with every padded step."
    ),
    right_value="slot -1: nothing written, output zero",
    scenario="padding-on-slot-zero",
    mixin=_PaddingOnSlotZero,
    ledger=(),
    numeric=("padding-inert",),
    damage="slot 0 is reserved and nobody's; where it can be allocated its owner answers wrongly",
)

CURSORS_STAY_WITH_ROWS = Fault(
    id="cursors-stay-with-rows",
    title="After a row has left, the others keep the cursors of the rows they move to",
    source="https://github.com/vllm-project/vllm/pull/51599",
    mechanism=(
        "Counts are kept by row and not by request. When a request leaves, the last one takes its row and "
        "with it the cursor of the one that left."
    ),
    right_value="each row's cursor is its request's own",
    scenario="cursors-stay-with-rows",
    mixin=_CursorsStayWithRows,
    ledger=(),
    numeric=("state-matches-oracle",),
)

END_WITH_STEPS_IN_FLIGHT = Fault(
    id="end-with-steps-in-flight",
    title="A finished request donates a slot that a step in flight still writes",
    source="https://github.com/FlashML-org/FreeToken/pull/287",
    mechanism=(
        "The slot goes to the tree at once. The step that was scheduled before runs after it, and moves the "
        "window and the cursor of a checkpoint that others may match."
    ),
    right_value="wait for the step, then donate up to the last fold",
    scenario="end-with-steps-in-flight",
    mixin=_EndsWithStepsInFlight,
    ledger=("checkpoint-immutable", "components-agree", "cursor-in-range", "step-writes-its-rows"),
    numeric=("state-matches-oracle", "warm-equals-cold"),
)

LIVE_STATE_AS_BLOCK = Fault(
    id="live-state-as-block",
    title="The live state is stored as the boundary of the last full block",
    source="https://github.com/jundot/omlx/pull/3086",
    mechanism=(
        "A chunk ends past the last block boundary. The state at its end is stored under the key of that "
        "block: three tokens are in the state and not in the key."
    ),
    right_value="stop at the boundary and store the state there: block 4, state 4",
    scenario="live-state-as-block",
    mixin=_LiveStateAsBlock,
    ledger=("key-matches-state",),
    numeric=("state-matches-oracle",),
)

COW_SURVIVES_REJECTION = Fault(
    id="cow-survives-rejection",
    title="The copy recorded by a rejected admission is used by the retry",
    source="https://github.com/sgl-project/sglang/pull/29354",
    mechanism=(
        "A match records its copy source, the admission is rejected, the record stays. By the retry the node "
        "is gone and its slot has another owner, whose state is copied."
    ),
    right_value="forget the record on rejection; the retry copies only what it matches itself",
    scenario="cow-survives-rejection",
    mixin=_SourceSurvivesRejection,
    ledger=("cow-source-pinned",),
    numeric=(),
)
