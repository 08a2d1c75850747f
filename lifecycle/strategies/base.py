"""What a cache strategy decides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from replaylife.lifecycle.planned import PlannedRow
from replaylife.lifecycle.planner import Planner
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.store import StateStore


class Strategy(ABC):
    """How checkpoints flow from requests to the tree.

    ``plan`` runs when a step is scheduled and reserves slots for the checkpoints it will leave; the engine
    writes them when the step executes; ``commit`` runs when the host has seen the step, and only then may
    anything be claimed about them. Adding a strategy takes one class in one file and one line in
    :data:`replaylife.lifecycle.strategies.STRATEGIES`.
    """

    on_grid: ClassVar[bool] = True
    """Whether every checkpoint must lie on the grid of page and chunk."""

    branches: ClassVar[bool] = False
    """Whether a chunk that passes the end of a longer key-value hit leaves a checkpoint there."""

    def __init__(self, store: StateStore, planner: Planner) -> None:
        self.store, self.planner = store, planner

    def open(self, request: Request) -> bool:
        """Take what a request needs beside its own slot; ``False`` if it is not to be had."""
        del request
        return True

    def refuse_chunk(self, request: Request, start: int, end: int) -> str | None:
        """Say why a prefill chunk ``[start, end)`` is not allowed, or ``None``."""
        del request, start, end
        return None

    @abstractmethod
    def plan(self, row: PlannedRow) -> None:
        """Add to ``row.copies`` the checkpoints that this row is to leave, with slots for them."""

    @abstractmethod
    def commit(self, row: PlannedRow) -> None:
        """Publish or stamp the row's checkpoints: the step that wrote them is committed."""

    def discard(self, row: PlannedRow) -> None:
        """Give back the slots of checkpoints that a request which has ended no longer wants."""
        for copy in row.copies:
            self.store.free_slot(copy.dst, "its request has ended")
        row.copies.clear()

    @abstractmethod
    def finish(self, request: Request) -> int:
        """Donate what the request holds (cache_finished_req); return the key's length, 0 for nothing."""

    def close(self, request: Request) -> None:
        """Free what ``open`` took, and everything taken for the request since."""
        for slot in request.track_slots:
            self.store.free_slot(slot, "its request has ended")
        request.track_slots.clear()
        request.stamps.clear()
