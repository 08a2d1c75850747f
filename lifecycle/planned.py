"""A forward step between its schedule and its commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from replaylife.lifecycle.request import Request
from replaylife.pool import EMPTY, Fold

Stage: TypeAlias = Literal["scheduled", "executed"]


class PlannedCopy(NamedTuple):
    """A checkpoint that a step leaves: the state after ``length`` tokens goes to slot ``dst``."""

    length: int
    dst: int


@dataclass(slots=True)
class Window:
    """The verify window of a row: ``keep`` tokens at most are to be kept of it.

    ``before`` are the tokens absorbed before it, ``records`` those pending in the ring by then, ``tokens``
    what went in and ``sampled`` what the model sampled after each.
    """

    keep: int
    before: Fold = EMPTY
    records: int = 0
    tokens: tuple[int, ...] = ()
    sampled: tuple[int, ...] = ()

    @property
    def num_confirmed(self) -> int:
        """The tokens that the model confirms: the sampled one, and each draft that it would have sampled."""
        count = 1
        while count < len(self.tokens) and self.tokens[count] == self.sampled[count - 1]:
            count += 1
        return min(self.keep, count)


@dataclass(slots=True)
class PlannedRow:
    """One request's part of a step: tokens ``[start, end)``, and the checkpoints to be left on the way.

    ``slot`` is the request's when the step is scheduled. ``decode`` rows have one token, or those of their
    verify ``window``, of which ``end`` comes to count the kept ones only; the others are prefill chunks.
    ``copies`` are in order of length; ``published`` once the strategy has committed them.
    """

    request: Request
    slot: int
    start: int
    end: int
    decode: bool
    copies: list[PlannedCopy] = field(default_factory=list)
    published: bool = False
    window: Window | None = None


@dataclass(slots=True)
class PlannedStep:
    """Rows that run in one forward, padded to ``pad_to`` rows.

    ``number`` counts steps; ``executed_at`` is the action in which the tensors were written.
    """

    number: int
    rows: list[PlannedRow]
    pad_to: int | None = None
    executed_at: int | None = None

    @property
    def stage(self) -> Stage:
        """Whether the tensors have been written."""
        return "scheduled" if self.executed_at is None else "executed"
