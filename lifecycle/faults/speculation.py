"""Faults of verify windows: what is kept, what is taken back, and what is left in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replaylife.lifecycle.batch import BatchLayout, WindowBatch, WindowRow
from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.planned import PlannedCopy, PlannedRow, Window
from replaylife.lifecycle.request import Closing, Request
from replaylife.lifecycle.stepper import Stepper
from replaylife.lifecycle.store import StateStore
from replaylife.pool import MambaPool, Record


class _RejectedRecordsStay(MambaPool):
    def set_back(self, slot: int, count: int) -> None:
        pass


class _PhantomRecord(MambaPool):
    def append_window(self, slot: int, records: Sequence[Record]) -> None:
        super().append_window(slot, records)
        self.advance([slot])


class _ConvNotRolledBack(MambaPool):
    def rewind_window(self, slot: int, position: int) -> None:
        pass


class _WindowEndAtTrackPoint(StateStore):
    def checkpoint_in_window(
        self, request: Request, slot: int, records: int, position: int, copy: PlannedCopy
    ) -> None:
        past = request.executed - copy.length
        super().checkpoint_in_window(request, slot, records + past, position + past, copy)


class _CrossingUnseen(Stepper):
    def _leave_in_window(self, row: PlannedRow, window: Window, copy: PlannedCopy) -> None:
        pass


class _WindowOverwritesRing(Stepper):
    def _make_room(self, row: PlannedRow) -> None:
        self.store.pool.reset_cursor(row.slot)


class _KeepsOneTooMany(Stepper):
    def _num_kept(self, window: Window) -> int:
        return min(super()._num_kept(window) + 1, len(window.tokens))


class _CountsFollowRows(Stepper):
    _above: int | None = None

    def _num_kept(self, window: Window) -> int:
        own, above = super()._num_kept(window), self._above
        self._above = own
        return own if above is None else min(above, len(window.tokens))


class _CursorsOfOtherRows(BatchLayout):
    def arrange_windows(self, rows: Sequence[WindowRow]) -> WindowBatch:
        batch = super().arrange_windows(rows)
        return replace(batch, cursors=batch.cursors[::-1])


class _EndsInsideWindow(ReferenceEngine):
    def _close(self, request: Request, how: Closing) -> None:
        super()._close(request, how)
        if request.drafts:
            self._end(request)
            request.closing = None


REJECTED_RECORDS_STAY = Fault(
    id="rejected-records-stay",
    title="Rejected draft tokens stay in the state",
    source="https://github.com/vllm-project/tpu-inference/pull/3178",
    mechanism=(
        "A window's tokens have all gone through the recurrence. If rejection sets the request back and not "
        "the state, the next token is computed from a state that has absorbed tokens nobody said."
    ),
    right_value="the cursor set back by the rejected tokens: 2 records of a window of 4 that keeps 2",
    scenario="rejected-records-stay",
    mixin=_RejectedRecordsStay,
    ledger=("live-state-complete", "ring-owned", "cursor-advances-once"),
    numeric=("state-matches-oracle",),
)

PHANTOM_RECORD = Fault(
    id="phantom-record-per-window",
    title="The cursor is advanced for the window, and once more when it commits",
    source="https://github.com/sgl-project/sglang/pull/28695",
    mechanism=(
        "The decode path and the speculative commit both move the shared cursor: each window leaves one "
        "record too many, a rejected one, which the next read and the next fold absorb."
    ),
    right_value="the cursor moves by the kept tokens: 10 after five windows that keep 2, not 15",
    scenario="phantom-record-per-window",
    mixin=_PhantomRecord,
    ledger=("live-state-complete", "ring-owned", "cursor-advances-once"),
    numeric=("state-matches-oracle",),
)

CONV_NOT_ROLLED_BACK = Fault(
    id="conv-not-rolled-back",
    title="The recurrent state is rolled back and the convolution is not",
    source="https://github.com/ggml-org/llama.cpp/pull/28123",
    mechanism=(
        "Only the state keeps what it needs to go back. The convolution's window stays at the end of the "
        "verify window: the next tokens are convolved with rejected inputs."
    ),
    right_value="both at the last kept token: state 12, convolution 12",
    scenario="conv-not-rolled-back",
    mixin=_ConvNotRolledBack,
    ledger=("live-state-complete",),
    numeric=("state-matches-oracle",),
)

WINDOW_END_AT_TRACK_POINT = Fault(
    id="window-end-at-track-point",
    title="A track point inside a window snapshots the window's end",
    source="https://github.com/sgl-project/sglang/pull/32692",
    mechanism=(
        "The track slot must get the state at the boundary inside the accepted tokens. It gets the state "
        "after the last of them, under the boundary's length."
    ),
    right_value="the state after 16 tokens in the track slot, live state 18",
    scenario="window-end-at-track-point",
    mixin=_WindowEndAtTrackPoint,
    ledger=("tracked-means-folded", "stamp-is-true"),
    numeric=(),
)

CROSSING_UNSEEN = Fault(
    id="window-crossing-unseen",
    title="A boundary inside an accepted window is stamped and never snapshotted",
    source="https://github.com/sgl-project/sglang/issues/37817",
    mechanism=(
        "The test for a crossed boundary compares the length before the window with itself, so nothing is "
        "written, while the scheduler goes on and books the checkpoint."
    ),
    right_value="a snapshot after two tokens of the window: 14 + 2 = 16",
    scenario="window-crossing-unseen",
    mixin=_CrossingUnseen,
    ledger=("stamp-is-true",),
    numeric=(),
)

WINDOW_OVERWRITES_RING = Fault(
    id="window-overwrites-ring",
    title="A window that does not fit starts over in the ring, without a fold",
    source="https://github.com/ROCm/ATOM/pull/1883",
    mechanism=(
        "A window is written from the start of the buffer because what is committed there is folded first. "
        "Without that fold it overwrites records that are in no checkpoint yet."
    ),
    right_value="fold the 6 pending records first, then append",
    scenario="window-overwrites-ring",
    mixin=_WindowOverwritesRing,
    ledger=("live-state-complete", "cursor-advances-once"),
    numeric=("state-matches-oracle", "warm-equals-cold"),
)

KEEPS_ONE_TOO_MANY = Fault(
    id="keeps-one-too-many",
    title="One more token is kept than the model has confirmed",
    source="https://github.com/vllm-project/vllm/issues/56419",
    mechanism=(
        "The count of accepted tokens is off by one and a rejected draft is committed as if it had been "
        "accepted. State and tokens agree, on something the model did not say."
    ),
    right_value="the first draft that the model would not have sampled is rejected",
    scenario="keeps-one-too-many",
    mixin=_KeepsOneTooMany,
    ledger=("kept-as-sampled",),
    numeric=(),
    damage="the reply is wrong and its logits are not: they belong to the tokens that were kept",
)

COUNTS_FOLLOW_ROWS = Fault(
    id="kept-counts-follow-rows",
    title="A request is committed with the accepted count of another row",
    source="https://github.com/vllm-project/vllm/pull/51599",
    mechanism=(
        "Accepted counts are kept by row and not by request. After rows have moved, a request that had one "
        "token accepted commits three."
    ),
    right_value="each request's own count: 1",
    scenario="kept-counts-follow-rows",
    mixin=_CountsFollowRows,
    ledger=("kept-as-sampled",),
    numeric=(),
    damage="the reply is wrong and its logits are not: they belong to the tokens that were kept",
)

WINDOW_CURSORS_OF_OTHER_ROWS = Fault(
    id="window-cursors-of-other-rows",
    title="In a verify step rows read and append at each other's cursors",
    source="https://github.com/vllm-project/vllm/pull/51599",
    mechanism=(
        "The cursors of a verify step are gathered in another order than its slots. A row reads records that "
        "are not pending, or misses some that are, and its own are appended at the wrong place."
    ),
    right_value="each row's cursor is its request's own",
    scenario="window-cursors-of-other-rows",
    mixin=_CursorsOfOtherRows,
    ledger=(),
    numeric=("state-matches-oracle", "warm-equals-cold"),
)

ENDS_INSIDE_WINDOW = Fault(
    id="ends-inside-window",
    title="A request that ends while its window is open gives its slot away at once",
    source="https://github.com/sgl-project/sglang/pull/29449",
    mechanism=(
        "Its state is donated or freed, yet its row is still in the verify step that commits next: the "
        "commit then moves the cursor and the window of a slot that has another owner."
    ),
    right_value="wait for the window to be closed, keep nothing of it, then end",
    scenario="ends-inside-window",
    mixin=_EndsInsideWindow,
    ledger=("checkpoint-immutable", "components-agree", "cursor-in-range", "slots-conserved"),
    numeric=("state-matches-oracle",),
    damage="a hit copies the checkpoint, which is right: cursor and live window are wrong beside it",
)
