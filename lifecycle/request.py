"""A request in the reference engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from replaylife.lifecycle.snapshot import Phase
from replaylife.pool import EMPTY, Fold, Record
from replaylife.radix import Node


class PendingCow(NamedTuple):
    """A copy-on-write recorded at match time: run once, before the request's first forward."""

    src: int
    dst: int


@dataclass(slots=True)
class Request:
    """The bookkeeping of one request.

    ``tokens`` are the prompt and every sampled token; ``[0, executed)`` of them are in the state, and
    ``tokens[committed]`` is the next to go in. ``locked`` is the node whose state this request pins,
    ``copies`` how often its copy-on-write has run.
    """

    id: str
    tokens: list[int]
    prompt_len: int
    slot: int | None = None
    locked: Node | None = None
    cached: int = 0
    kv_tokens: int = 0
    scheduled: int = 0
    executed: int = 0
    committed: int = 0
    absorbed: Fold = EMPTY
    pending_cow: PendingCow | None = None
    copies: int = 0
    phase: Phase = "prefill"

    @property
    def reply(self) -> tuple[int, ...]:
        """Every sampled token, the one not yet in any key included."""
        return tuple(self.tokens[self.prompt_len :])

    @property
    def held_slot(self) -> int:
        """The slot of a running request. Raises ``RuntimeError`` if it has none."""
        if self.slot is None:
            raise RuntimeError(f"request {self.id!r} holds no slot in phase {self.phase}")
        return self.slot

    def records(self, start: int, end: int) -> tuple[Record, ...]:
        """Return the records for tokens ``[start, end)``."""
        return tuple(Record(self.id, position, self.tokens[position]) for position in range(start, end))

    def execute_to(self, end: int) -> None:
        """Move all three lengths to ``end``: without overlap a step executes and commits at once."""
        self.absorbed = self.absorbed.after(self.tokens[self.executed : end])
        self.scheduled = self.executed = self.committed = end
