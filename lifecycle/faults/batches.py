"""Faults in what the rows of one batch have to do with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replaylife.lifecycle.batch import Batch, BatchLayout, Row
from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.planned import PlannedCopy, PlannedRow
from replaylife.lifecycle.stepper import Stepper


class _GridOfTheBatch(Stepper):
    def _stops(self, row: PlannedRow) -> list[tuple[int, list[PlannedCopy]]]:
        step = next(step for step in self.in_flight if row in step.rows)
        chunks = [other for other in step.rows if not other.decode]
        before, grid = chunks[: chunks.index(row)], self.planner.grid
        off = sum((other.end - other.start) % grid for other in before)
        stops: dict[int, list[PlannedCopy]] = {}
        for stop, copies in super()._stops(row):
            at = max(stop - off, row.start + 1) if copies else stop
            stops.setdefault(at, []).extend(copies)
        stops.setdefault(row.end, [])
        return sorted(stops.items())


class _TrackIsNoOperation(Stepper):
    def _leave(self, row: PlannedRow, copy: PlannedCopy) -> None:
        """Book the checkpoint and write nothing."""


class _RowsNotRefreshed(BatchLayout):
    _last: tuple[int, ...] = ()

    def arrange(self, rows: Sequence[Row], pad_to: int | None) -> Batch:
        batch = super().arrange(rows, pad_to)
        stale = batch.num_padding > 0 and len(self._last) == len(batch.slots)
        self._last = self._last if stale else batch.slots
        return replace(batch, slots=self._last)


SNAPSHOT_ON_BATCH_GRID = Fault(
    id="snapshot-on-batch-grid",
    title="A snapshot's index counts chunks per request where the kernel's chunks run through the batch",
    source="https://github.com/sgl-project/sglang/pull/37836",
    mechanism=(
        "The states inside a prefill lie on one grid over the flattened batch. Looked up as if each request "
        "began on that grid, every row but the first gets a state from before the place it is filed under."
    ),
    right_value="for each row the state at its own checkpoint: 8 tokens",
    scenario="snapshot-on-batch-grid",
    mixin=_GridOfTheBatch,
    ledger=("key-matches-state",),
    numeric=("state-matches-oracle",),
)

TRACK_NEVER_WRITTEN = Fault(
    id="track-never-written",
    title="Track slots are donated and were never written",
    source="https://github.com/sgl-project/sglang/pull/30862",
    mechanism=(
        "A kernel backend that does not save states at track points runs under a strategy that donates track "
        "slots. Each is published with what an earlier owner left there, or with nothing."
    ),
    right_value="the slot covers 8 tokens, or the strategy is refused",
    scenario="track-never-written",
    mixin=_TrackIsNoOperation,
    ledger=("key-matches-state",),
    numeric=("state-matches-oracle",),
)

STALE_ROWS_IN_PADDED_STEP = Fault(
    id="stale-rows-in-padded-step",
    title="A padded step runs with the rows of the step before",
    source="https://github.com/vllm-project/vllm/pull/42947",
    mechanism=(
        "With a padding row in the batch the buffer that says which slot a row reads and writes is not "
        "refreshed. Requests that have moved to other rows since read and write each other's states."
    ),
    right_value="each row's slot is its request's own, written anew before every step",
    scenario="stale-rows-in-padded-step",
    mixin=_RowsNotRefreshed,
    ledger=(),
    numeric=("state-matches-oracle", "warm-equals-cold", "padding-inert"),
)
