"""Verify windows: T tokens of a row run at once, the first n of them are kept, the rest never happened."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from replaylife.lifecycle.batch import BatchLayout, WindowRow
from replaylife.lifecycle.compute import Compute
from replaylife.lifecycle.events import Accepted, Drafted, StateFolded, StepScheduled
from replaylife.lifecycle.planned import PlannedCopy, PlannedRow, PlannedStep, Window
from replaylife.lifecycle.planner import Planner
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.store import StateStore
from replaylife.lifecycle.strategies import Strategy

Windows = Sequence[tuple[Request, int, int]]


class WindowSteps:
    """The part of a stepper that opens windows and closes them.

    An open window is a step in flight that has executed: its tokens are in the ring, ``executed`` is past
    them, and it is not known how many count. When the step commits the cursor and the convolution go back to
    the last kept token. A track point among the kept tokens leaves its checkpoint then, folded into another
    slot (``fold_into``): the request's own slot is not folded for it. Source of the rules:
    sgl-project/sglang#28695 and #32692.
    """

    store: StateStore
    planner: Planner
    strategy: Strategy
    compute: Compute
    in_flight: deque[PlannedStep]
    _layout: BatchLayout
    _touch: Callable[[Request], None]
    _number: int

    def open_windows(self, windows: Windows) -> None:
        """Schedule and execute a step of verify windows, one (request, window, keep) per row."""
        self._number += 1
        self.store.take_kv(sum(window for _, window, _ in windows))
        rows = [self._plan_window(*window) for window in windows]
        step = PlannedStep(self._number, rows, executed_at=self.store.pool.step)
        self.in_flight.append(step)
        spans = tuple((row.request.id, row.start, row.end) for row in rows)
        self.store.events.append(StepScheduled(step.number, spans))
        self._run_windows(rows)

    def _plan_window(self, request: Request, length: int, keep: int) -> PlannedRow:
        start, window = request.scheduled, Window(keep, before=request.absorbed)
        request.kv_tokens += length
        request.schedule_to(start + length)
        request.in_flight += 1
        self._touch(request)
        return PlannedRow(request, request.held_slot, start, start + length, decode=True, window=window)

    def _run_windows(self, planned: Sequence[PlannedRow]) -> None:
        """Make room in the rings, run all windows at once, and book what they have written."""
        pool = self.store.pool
        before = [pool.pending(plan.slot) for plan in planned]
        for plan in planned:
            if self.planner.must_make_room(pool.pending(plan.slot), plan.end - plan.start):
                self._make_room(plan)
        rows = [self._window_row(plan) for plan in planned]
        sampled = self.compute.verify(self._layout.arrange_windows(rows))
        for plan, row, tokens, cursor in zip(planned, rows, sampled, before, strict=True):
            if plan.window is not None:
                plan.window.records, plan.window.tokens = row.cursor, row.tokens
                plan.window.sampled = tokens
            row.request.open_window(row.tokens)
            pool.append_window(row.slot, row.request.records(plan.start, plan.end))
            self.store.events.append(
                Drafted(row.request.id, row.slot, plan.start, row.tokens, cursor, pool.pending(row.slot))
            )

    def _make_room(self, row: PlannedRow) -> None:
        """Fold the records that leave no room for the window's."""
        self.store.fold(row.request, row.slot)

    def _window_row(self, row: PlannedRow) -> WindowRow:
        request, keep = row.request, 1 if row.window is None else row.window.keep
        tokens = self.compute.draft(request, row.end - row.start, keep)
        return WindowRow(request, row.slot, row.start, tokens, self.store.pool.pending(row.slot))

    # -- closing -------------------------------------------------------------------------------------

    def _close_window(self, row: PlannedRow, window: Window) -> None:
        """Keep what the model confirms, nothing of a request that has ended; the row ends there."""
        request, wanted = row.request, row.request.closing is None
        kept = self._num_kept(window) if wanted else 0
        length, row.end = row.end - row.start, row.start + kept
        self._reject(row, window, length, kept)
        self.store.kv.give_back(length - kept)
        request.kv_tokens -= length - kept
        if wanted:
            request.tokens.append(window.sampled[kept - 1])
            request.commit_to(row.end)
            self.strategy.plan(row)
            for copy in row.copies:
                self._leave_in_window(row, window, copy)
            self._fold_full(row)
            self.store.events.append(self._accepted(row, window, length, kept))
        self.store.pool.close_window(row.slot)

    def _num_kept(self, window: Window) -> int:
        """How many tokens of the window are kept."""
        return window.num_confirmed

    def _reject(self, row: PlannedRow, window: Window, length: int, kept: int) -> None:
        """Set request, cursor and convolution back to the last kept token."""
        row.request.close_window(window.before, kept)
        self.store.pool.set_back(row.slot, length - kept)
        self.store.pool.rewind_window(row.slot, kept)

    def _leave_in_window(self, row: PlannedRow, window: Window, copy: PlannedCopy) -> None:
        """Write a checkpoint at a length inside the window: checkpoint and records up to there."""
        position = copy.length - row.start
        self.store.checkpoint_in_window(row.request, row.slot, window.records + position, position, copy)

    def _fold_full(self, row: PlannedRow) -> None:
        """Fold a ring that the kept tokens have filled."""
        if self.planner.must_fold(self.store.pool.pending(row.slot), forced=False):
            for folded in self.store.pool.fold([row.slot]):
                row.request.folded = folded.length
                self.store.events.append(StateFolded(*folded, forced=False))

    def _accepted(self, row: PlannedRow, window: Window, length: int, kept: int) -> Accepted:
        return Accepted(
            request=row.request.id,
            slot=row.slot,
            position=row.start,
            window=length,
            tokens=window.tokens[:kept],
            sampled=window.sampled[:kept],
            cursor_after=self.store.pool.pending(row.slot),
        )
