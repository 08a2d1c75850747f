"""The three events of a forward step: schedule, execute, commit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from replaylife.lifecycle.batch import BatchLayout, Row
from replaylife.lifecycle.compute import Compute
from replaylife.lifecycle.events import Decoded, Prefilled, StateFolded, StepCommitted, StepScheduled
from replaylife.lifecycle.planned import PlannedCopy, PlannedRow, PlannedStep
from replaylife.lifecycle.planner import Planner
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.store import StateStore
from replaylife.lifecycle.strategies import Strategy
from replaylife.lifecycle.windows import WindowSteps

MAX_IN_FLIGHT = 2


class Stepper(WindowSteps):
    """Takes steps through schedule (lengths and slots decided), execute (tensors written) and commit.

    Steps execute and commit in the order in which they were scheduled. Without overlap the three happen in
    one action; with it, one step may be scheduled while the one before it is not yet committed. Nothing is
    claimed about a checkpoint before the step that wrote it has committed.
    """

    def __init__(
        self,
        store: StateStore,
        planner: Planner,
        strategy: Strategy,
        compute: Compute,
        layout: BatchLayout,
        touch: Callable[[Request], None],
    ) -> None:
        self.store, self.planner, self.strategy, self.compute = store, planner, strategy, compute
        self._layout, self._touch = layout, touch
        self._number = 0
        self.in_flight: deque[PlannedStep] = deque()

    # -- schedule ------------------------------------------------------------------------------------

    def schedule(
        self, decodes: Sequence[Request], chunks: Sequence[tuple[Request, int]], pad_to: int | None = None
    ) -> PlannedStep:
        """Decide on a step: take key-value tokens, move the scheduled lengths, reserve slots for copies."""
        self._number += 1
        self.store.take_kv(len(decodes))
        counts = [*((r, 1, True) for r in decodes), *((r, count, False) for r, count in chunks)]
        rows = [
            PlannedRow(r, r.held_slot, r.scheduled, r.scheduled + count, decode)
            for r, count, decode in counts
        ]
        for row in rows:
            row.request.kv_tokens += row.decode
            row.request.schedule_to(row.end)
            row.request.in_flight += 1
            self.strategy.plan(row)
            self._touch(row.request)
        step = PlannedStep(self._number, rows, pad_to)
        self.in_flight.append(step)
        spans = tuple((row.request.id, row.start, row.end) for row in rows)
        self.store.events.append(StepScheduled(step.number, spans))
        return step

    # -- execute -------------------------------------------------------------------------------------

    def execute(self) -> None:
        """Write the tensors of the oldest scheduled step."""
        step = next(step for step in self.in_flight if step.stage == "scheduled")
        step.executed_at = self.store.pool.step
        for row in step.rows:
            if not row.decode:
                self._run_chunk(row)
        decodes = [row for row in step.rows if row.decode]
        if decodes:
            self._run_decode(decodes, step.pad_to)

    def _run_chunk(self, row: PlannedRow) -> None:
        """Run a chunk, stopping at each length where a checkpoint is to be left."""
        request = row.request
        self.store.run_cow(request)
        self.store.fold(request, row.slot)
        for stop, copies in self._stops(row):
            sampled = self._write_prefill(request, row.slot, request.executed, stop)
            request.execute_to(stop)
            request.folded = stop
            if stop == row.end:
                self._end_chunk(row, sampled)
            for copy in copies:
                self._leave(row, copy)

    def _stops(self, row: PlannedRow) -> list[tuple[int, list[PlannedCopy]]]:
        """The lengths at which a chunk stops, its end the last, with the checkpoints left exactly there."""
        lengths = sorted({row.end, *(copy.length for copy in row.copies)})
        return [(length, [copy for copy in row.copies if copy.length == length]) for length in lengths]

    def _end_chunk(self, row: PlannedRow, sampled: int) -> None:
        """Book a chunk that has run to its end; the prompt's last one has sampled the first reply token."""
        request, last = row.request, row.end == row.request.prompt_len
        if last:
            request.tokens.append(sampled)
        self._touch(request)
        self.store.events.append(
            Prefilled(request.id, row.slot, row.start, row.end, sampled if last else None)
        )

    def _leave(self, row: PlannedRow, copy: PlannedCopy) -> None:
        """Write a planned checkpoint: the state as it stands now."""
        self.store.copy_checkpoint(row.request, row.slot, copy)

    def _write_prefill(self, request: Request, slot: int, start: int, end: int) -> int:
        sampled = self.compute.prefill(request, slot, start, end)
        self.store.pool.absorb(slot, request.records(start, end))
        return sampled

    def _run_decode(self, planned: Sequence[PlannedRow], pad_to: int | None) -> None:
        """Read and append, advance the cursors, fold what is due, leave the checkpoints planned."""
        rows = [self._row(row) for row in planned]
        sampled = self._write_decode(rows, self.store.cache.graph_rows or pad_to)
        self.store.pool.advance(row.slot for row in rows)
        self._fold_due(rows)
        for plan, row in zip(planned, rows, strict=True):
            request, token = row.request, sampled[row.request.id]
            request.execute_to(row.position + 1)
            request.tokens.append(token)
            self._touch(request)
            self.store.events.append(self._decoded(row, token))
            for copy in plan.copies:
                self._leave(plan, copy)

    def _row(self, plan: PlannedRow) -> Row:
        cursor = self.store.pool.pending(plan.slot)
        return Row(plan.request, plan.slot, plan.start, plan.request.tokens[plan.start], cursor)

    def _write_decode(self, rows: Sequence[Row], pad_to: int | None) -> dict[str, int]:
        batch = self._layout.arrange(rows, pad_to)
        tokens = self.compute.decode(batch)
        sampled = {row.request.id: token for row, token in zip(batch.rows, tokens, strict=True)}
        self.store.pool.append(
            (row.slot, row.request.records(row.position, row.position + 1)[0]) for row in rows
        )
        return sampled

    def _fold_due(self, rows: Sequence[Row]) -> None:
        pool = self.store.pool
        forced = {row.slot: self.planner.force_flush(row.position + 1) for row in rows}
        due = [
            slot for slot, force in forced.items() if self.planner.must_fold(pool.pending(slot), forced=force)
        ]
        holders = {row.slot: row.request for row in rows}
        if pool.write_pos is None:
            for row in rows:
                row.request.folded = row.position + 1
        for folded in pool.fold(due):
            holders[folded.slot].folded = folded.length
            self.store.events.append(StateFolded(*folded, forced=forced[folded.slot]))

    def _decoded(self, row: Row, token: int) -> Decoded:
        off = self.store.pool.write_pos is None
        return Decoded(
            request=row.request.id,
            slot=row.slot,
            position=row.position,
            sampled=token,
            cursor_before=None if off else row.cursor,
            cursor_after=None if off else self.store.pool.pending(row.slot),
            tracked=self.planner.is_track_point(row.position + 1),
        )

    # -- commit --------------------------------------------------------------------------------------

    def commit(self) -> Iterator[Request]:
        """Publish and stamp what the oldest step has written; yield the requests that can now end."""
        step = self.in_flight.popleft()
        discarded = []
        for row in step.rows:
            request = row.request
            request.in_flight -= 1
            self._touch(request)
            if row.window is not None:
                self._close_window(row, row.window)
            if request.closing is None:
                request.commit_to(row.end)
                self._publish(row)
            else:
                self.strategy.discard(row)
                discarded.append(request.id)
        self.store.events.append(StepCommitted(step.number, tuple(discarded)))
        yield from (row.request for row in step.rows if row.request.closing and not row.request.in_flight)

    def _publish(self, row: PlannedRow) -> None:
        """Let the strategy publish or stamp what the row has left, once."""
        if not row.published:
            row.published = True
            self.strategy.commit(row)
