"""A request in the reference engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from replaylife.lifecycle.snapshot import Phase
from replaylife.pool import EMPTY, Fold, Record
from replaylife.radix import Node

Closing: TypeAlias = Literal["finish", "abort", "retract", "transfer"]


class PendingCow(NamedTuple):
    """A copy-on-write recorded at match time: run once, before the request's first forward."""

    src: int
    dst: int


@dataclass(slots=True)
class Request:
    """The bookkeeping of one request.

    ``tokens`` are the prompt and every sampled token; ``[0, executed)`` of them are in the state, and
    ``tokens[committed]`` is the next to go in. ``locked`` is the node whose state this request pins,
    ``copies`` how often its copy-on-write has run. ``folded`` is the length at which temporal stands once
    the steps executed so far are done, ``branch`` the length at which a chunk on its way leaves a checkpoint
    for siblings. ``track_slots`` are further slots it owns, in order of use, and ``stamps`` the tokens of the
    checkpoint in each of them that a committed step has written; ``marks`` are those that steps in flight
    are to write, once per step. With ``in_flight`` steps between schedule
    and commit, an end that has been asked for waits in ``closing``. ``drafts`` are the tokens of an open
    verify window: the last of ``tokens``, of which those that are rejected leave it again.
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
    folded: int = 0
    branch: int | None = None
    track_slots: list[int] = field(default_factory=list)
    stamps: dict[int, Fold] = field(default_factory=dict)
    marks: list[int] = field(default_factory=list)
    in_flight: int = 0
    closing: Closing | None = None
    drafts: tuple[int, ...] = ()

    @property
    def phase(self) -> Phase:
        """Where the request is: ``closing`` once its end has been asked for and steps are still in flight."""
        if self.closing is not None:
            return "closing"
        return "prefill" if self.executed < self.prompt_len else "decode"

    @property
    def reply(self) -> tuple[int, ...]:
        """Every sampled token that the host has seen, the one not yet in any key included."""
        return tuple(self.tokens[self.prompt_len : self.committed + 1])

    @property
    def held_slot(self) -> int:
        """The slot of a running request. Raises ``RuntimeError`` if it has none."""
        if self.slot is None:
            raise RuntimeError(f"request {self.id!r} holds no slot in phase {self.phase}")
        return self.slot

    def records(self, start: int, end: int) -> Sequence[Record]:
        """Return the records for tokens ``[start, end)``."""
        return tuple(Record(self.id, position, self.tokens[position]) for position in range(start, end))

    def schedule_to(self, end: int) -> None:
        """Tokens ``[0, end)`` have been decided on."""
        self.scheduled = end

    def execute_to(self, end: int) -> None:
        """Tokens ``[0, end)`` are in the tensors."""
        self.absorbed = self.absorbed.after(self.tokens[self.executed : end])
        self.executed = end

    def commit_to(self, end: int) -> None:
        """The host has seen the results of tokens ``[0, end)``."""
        self.committed = end

    def open_window(self, tokens: tuple[int, ...]) -> None:
        """A window of ``tokens`` has run: the sampled token, already known, and drafts after it."""
        self.tokens.extend(tokens[1:])
        self.drafts = tokens
        self.execute_to(self.executed + len(tokens))

    def close_window(self, before: Fold, kept: int) -> None:
        """Of the open window, which began after ``before``, only the first ``kept`` tokens have happened."""
        end = before.length + kept
        del self.tokens[max(end, before.length + 1) :]
        self.drafts = ()
        self.absorbed = before.after(self.tokens[before.length : end])
        self.scheduled = self.executed = end

    @property
    def slots(self) -> tuple[int, ...]:
        """Every slot that the request owns, its own first."""
        return tuple(self.track_slots) if self.slot is None else (self.slot, *self.track_slots)
