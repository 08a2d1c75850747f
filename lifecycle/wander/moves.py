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
    Action,
    Admit,
    Checkpoint,
    EvictKv,
    EvictStates,
    Finish,
    Flush,
    Forward,
    Prefill,
    Probe,
    Retract,
)
from replaylife.lifecycle.config import ModelConfig
from replaylife.lifecycle.events import AdmissionRejected, Decoded, Event, Finished, Prefilled, Released
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
class Ask:
    """Probe what a prompt would reuse."""

    prompt: tuple[Passage, ...]
    continues: str = ""


Move: TypeAlias = (
    Open
    | Resume
    | Ask
    | Prefill
    | Forward
    | Checkpoint
    | Flush
    | Finish
    | Abort
    | Retract
    | EvictStates
    | EvictKv
)


class Cast:
    """The tokens of every request so far: those ``running``, those ``retracted``, and those that ``ended``.

    ``keep`` bounds how many ended ones are remembered.
    """

    def __init__(self, model: ModelConfig, keep: int = 24) -> None:
        self._vocab, self._seed, self._keep = model.vocab, model.seed, keep
        self.running: dict[str, list[int]] = {}
        self.retracted: dict[str, list[int]] = {}
        self.ended: dict[str, list[int]] = {}

    def action(self, move: Move) -> Action | None:
        """Return the action that a move comes to; ``None`` where it refers to somebody who is not there."""
        match move:
            case Open(name, prompt, continues):
                known = name in self.running or name in self.retracted or name in self.ended
                tokens = None if known else self._tokens(name, prompt, continues)
                return None if tokens is None else Admit(name, tokens)
            case Ask(prompt, continues):
                tokens = self._tokens("match", prompt, continues)
                return None if tokens is None else Probe(tokens)
            case Resume(name):
                return Admit(name, tuple(self.retracted[name])) if name in self.retracted else None
            case _:
                return move

    def listen(self, action: Action, events: Iterable[Event]) -> None:
        """Take note of what an applied action sampled and whom it ended."""
        if isinstance(action, Admit):
            self.running[action.request] = list(action.tokens)
        for event in events:
            match event:
                case Prefilled() | Decoded():
                    if event.sampled is not None:
                        self.running[event.request].append(event.sampled)
                case AdmissionRejected(name):
                    self.running.pop(name)
                case Released(name, retracted=True):
                    self.retracted[name] = self.running.pop(name)
                case Released(name) | Finished(name):
                    self.ended[name] = self.running.pop(name)
        if isinstance(action, Admit) and action.request in self.running:
            self.retracted.pop(action.request, None)
        while len(self.ended) > self._keep:
            del self.ended[next(iter(self.ended))]

    def _tokens(self, owner: str, prompt: Iterable[Passage], continues: str) -> tuple[int, ...] | None:
        if continues and continues not in self.ended:
            return None
        tokens = list(self.ended[continues]) if continues else []
        for index, passage in enumerate(prompt):
            name = f"text {passage.text}" if passage.text else f"request {owner} {index}"
            tokens.extend(text(name, passage.tokens, self._vocab, self._seed))
        return tuple(tokens)
