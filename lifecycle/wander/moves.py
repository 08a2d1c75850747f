"""Moves: actions in the words of a scenario, so that any sequence of them can be written down and replayed.

An action carries token ids. A move says where they come from (a text, an earlier turn), so that leaving out
earlier moves still leaves a sequence that makes sense.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from replaylife.lifecycle.actions import (
    Abort,
    AbortCopy,
    Action,
    Admit,
    Cancel,
    Checkpoint,
    Commit,
    Draft,
    EndSession,
    EvictHost,
    EvictKv,
    EvictStates,
    Execute,
    Finish,
    FinishCopy,
    Flush,
    Forward,
    Load,
    Offload,
    Prefill,
    Probe,
    Retract,
    Schedule,
    Transfer,
    Verify,
)
from replaylife.lifecycle.config import ModelConfig
from replaylife.lifecycle.events import (
    Accepted,
    AdmissionRejected,
    Cancelled,
    Decoded,
    Event,
    Finished,
    Prefilled,
    Released,
)
from replaylife.lifecycle.scenario.prompts import text


class Passage(NamedTuple):
    """The first ``tokens`` tokens of a named text, or (``text`` empty) tokens of the request's own."""

    tokens: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Open:
    """Admit a new request, a later turn of ``continues`` if that is not empty."""

    request: str
    prompt: tuple[Passage, ...]
    continues: str = ""


@dataclass(frozen=True, slots=True)
class Resume:
    """Admit a retracted request again, with all its tokens."""

    request: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Admit a request again whose admission was rejected."""

    request: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Probe what a prompt would reuse."""

    prompt: tuple[Passage, ...]
    continues: str = ""


@dataclass(frozen=True, slots=True)
class Leave:
    """End the session of a request that has ended, with all its tokens."""

    request: str


Move: TypeAlias = (
    Open
    | Resume
    | Retry
    | Ask
    | Leave
    | Prefill
    | Forward
    | Schedule
    | Verify
    | Draft
    | Execute
    | Commit
    | Checkpoint
    | Flush
    | Finish
    | Abort
    | Retract
    | EvictStates
    | EvictKv
    | Offload
    | Load
    | Transfer
    | FinishCopy
    | AbortCopy
    | EvictHost
    | Cancel
)


class Cast:
    """The tokens of every request so far: ``running``, ``rejected``, ``retracted``, or ``ended``.

    ``turned_away`` are those whose last admission was rejected, retracted ones among them. ``keep`` bounds
    how many of the rejected and the ended ones are remembered. What the host has not seen when a request ends
    is no part of its tokens.
    """

    def __init__(self, model: ModelConfig, keep: int = 24) -> None:
        self._vocab, self._seed, self._keep = model.vocab, model.seed, keep
        self.running: dict[str, list[int]] = {}
        self.rejected: dict[str, list[int]] = {}
        self.retracted: dict[str, list[int]] = {}
        self.ended: dict[str, list[int]] = {}
        self.turned_away: set[str] = set()
        self._prompt_len: dict[str, int] = {}

    def action(self, move: Move) -> Action | None:
        """Return the action that a move comes to; ``None`` where it refers to somebody who is not there."""
        match move:
            case Open(name, prompt, continues):
                known = (self.running, self.rejected, self.retracted, self.ended)
                tokens = (
                    None if any(name in those for those in known) else self._tokens(name, prompt, continues)
                )
                return None if tokens is None else Admit(name, tokens)
            case Ask(prompt, continues):
                tokens = self._tokens("match", prompt, continues)
                return None if tokens is None else Probe(tokens)
            case Resume(name):
                return Admit(name, tuple(self.retracted[name])) if name in self.retracted else None
            case Retry(name):
                return Admit(name, tuple(self.rejected[name])) if name in self.rejected else None
            case Leave(name):
                return EndSession(name, tuple(self.ended[name])) if name in self.ended else None
            case _:
                return move

    def listen(self, action: Action, events: Iterable[Event]) -> None:
        """Take note of what an applied action sampled and whom it ended."""
        if isinstance(action, Admit):
            self.running[action.request] = list(action.tokens)
            self._prompt_len[action.request] = len(action.tokens)
        for event in events:
            match event:
                case Prefilled() | Decoded():
                    if event.sampled is not None:
                        self._hear(event.request, event.sampled)
                case Accepted():
                    for token in (*event.tokens[1:], *event.sampled[-1:]):
                        self._hear(event.request, token)
                case AdmissionRejected(name):
                    self.turned_away.add(name)
                    tokens = self.running.pop(name)
                    if name not in self.retracted:
                        self.rejected[name] = tokens
                case Cancelled(name):
                    self.turned_away.discard(name)
                    waiting = self.retracted if name in self.retracted else self.rejected
                    self.ended[name] = waiting.pop(name)
                case Released(name, retracted=True):
                    self.retracted[name] = self._seen(event)
                case Released(name) | Finished(name):
                    self.ended[name] = self._seen(event)
        if isinstance(action, Admit) and action.request in self.running:
            self.turned_away.discard(action.request)
            self.retracted.pop(action.request, None)
            self.rejected.pop(action.request, None)
        for those in (self.ended, self.rejected):
            while len(those) > self._keep:
                del those[next(iter(those))]

    def _seen(self, end: Released | Finished) -> list[int]:
        """What the host had seen of a request that has ended: committed tokens and the one sampled after.

        Nothing is cut within the prompt; what is kept is what a played scenario keeps.
        """
        tokens, known = self.running.pop(end.request), end.committed + 1
        return tokens[:known] if known > self._prompt_len.pop(end.request) else tokens

    def _hear(self, request: str, token: int) -> None:
        """Note a token; a faulty engine may run a request that has ended."""
        for those in (self.running, self.retracted, self.ended):
            if request in those:
                those[request].append(token)
                return

    def _tokens(self, owner: str, prompt: Iterable[Passage], continues: str) -> tuple[int, ...] | None:
        if continues and continues not in self.ended:
            return None
        tokens = list(self.ended[continues]) if continues else []
        for index, passage in enumerate(prompt):
            name = f"text {passage.text}" if passage.text else f"request {owner} {index}"
            tokens.extend(text(name, passage.tokens, self._vocab, self._seed))
        return tuple(tokens)
