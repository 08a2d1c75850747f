"""Who may come: conversations, drawn from templates, with the tokens of each of their turns.

Conversations of one template are alike: they share the texts that the template names and differ in tokens of
their own. :class:`Lineage` says of a token sequence what it is made of, whoever it belongs to, so that states
which differ only in who is who can be told to be the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from replaylife.lifecycle.compute import next_token
from replaylife.lifecycle.explore.schema import Scope
from replaylife.lifecycle.scenario.fields import Text
from replaylife.lifecycle.scenario.prompts import text
from replaylife.lifecycle.wander.moves import Open, Passage
from replaylife.pool import EMPTY, Fold

SAMPLED = "sampled"
IDLE, RUNNING, REJECTED, RETRACTED, OVER = range(5)


class Progress(NamedTuple):
    """How far a conversation is: its ``turn`` (from 0) and what has become of it.

    ``tokens`` are those of its last turn as the host knows them, ``bounds`` where the prompt of each turn so
    far starts and ends in them. ``away`` says that its last admission was rejected.
    """

    status: int = IDLE
    turn: int = 0
    tokens: tuple[int, ...] = ()
    bounds: tuple[tuple[int, int], ...] = ()
    away: bool = False


class Turn(NamedTuple):
    """What a turn adds: its passages, and the decode steps that it may take at most."""

    prompt: tuple[Passage, ...]
    decode: int


@dataclass(frozen=True, slots=True)
class Conversation:
    """One instance of a template. ``index`` counts the instances of all templates, in order."""

    index: int
    template: int
    name: str
    turns: tuple[Turn, ...]

    def request(self, turn: int) -> str:
        """The name of the request of a turn (from 0)."""
        return self.name if turn == 0 else f"{self.name}.{turn + 1}"

    def opening(self, turn: int) -> Open:
        """The move that admits a turn (from 0)."""
        before = "" if turn == 0 else self.request(turn - 1)
        return Open(self.request(turn), self.turns[turn].prompt, before)

    def added(self, turn: int, vocab: int, seed: int) -> tuple[int, ...]:
        """The tokens that a turn (from 0) adds."""
        tokens: list[int] = []
        for index, passage in enumerate(self.turns[turn].prompt):
            name = f"text {passage.text}" if passage.text else f"request {self.request(turn)} {index}"
            tokens.extend(text(name, passage.tokens, vocab, seed))
        return tuple(tokens)


def conversations(scope: Scope) -> tuple[Conversation, ...]:
    """Return every conversation of a scope, instances of one template next to each other."""
    made: list[Conversation] = []
    for number, template in enumerate(scope.conversations):
        turns = tuple(Turn(_passages(turn.prompt), turn.decode) for turn in template.turns)
        for instance in range(template.count):
            name = template.name if template.count == 1 else f"{template.name}{instance + 1}"
            made.append(Conversation(len(made), number, name, turns))
    return tuple(made)


def _passages(prompt: int | list[int | Text]) -> tuple[Passage, ...]:
    parts = prompt if isinstance(prompt, list) else [prompt]
    return tuple(
        Passage(part) if isinstance(part, int) else Passage(part.tokens, part.text) for part in parts
    )


class Label(NamedTuple):
    """What a token sequence is made of, and the conversation whose own tokens are in it (-1: nobody's)."""

    kind: int
    owner: int


class Lineage:
    """Labels of token sequences: equal kinds are equal up to who is who.

    A sequence that is no prefix of any conversation is a kind of its own, of nobody.
    """

    def __init__(self, vocab: int) -> None:
        self._vocab = vocab
        self._kinds: dict[object, int] = {}
        self._wholes: dict[tuple[int, tuple[int, ...]], Label] = {}
        self._labels: dict[Fold, Label] = {EMPTY: Label(self._kind("nothing"), -1)}

    def label(self, fold: Fold) -> Label | None:
        """Return the label of a sequence that has been learned."""
        return self._labels.get(fold)

    def stray(self, fold: Fold) -> Label:
        """Return the label of a sequence that is no prefix of any conversation."""
        return self._labels.setdefault(fold, Label(self._kind(fold), -1))

    def learn(self, who: Conversation, tokens: tuple[int, ...], bounds: tuple[tuple[int, int], ...]) -> Fold:
        """Label every prefix of a conversation's tokens; return the whole of them."""
        symbols = self._symbols(who, len(tokens), bounds)
        at, label = EMPTY, self._labels[EMPTY]
        for token, (symbol, own) in zip(tokens, symbols, strict=True):
            if symbol == SAMPLED and token != next_token(at, self._vocab):
                symbol = ("wrong draft", token)
            at = at.then(token)
            known = self._labels.get(at)
            if known is None:
                owner = who.index if own or label.owner == who.index else label.owner
                known = self._labels[at] = Label(self._kind((label.kind, symbol)), owner)
            label = known
        return at

    def label_of(
        self, who: Conversation, tokens: tuple[int, ...], bounds: tuple[tuple[int, int], ...]
    ) -> Label:
        """Return the label of a conversation's tokens, learning them if they are new."""
        key = (who.index, tokens)
        known = self._wholes.get(key)
        if known is None:
            known = self._wholes[key] = self._labels[self.learn(who, tokens, bounds)]
        return known

    def _symbols(
        self, who: Conversation, length: int, bounds: tuple[tuple[int, int], ...]
    ) -> list[tuple[object, bool]]:
        """What stands at each position: a text's token, one of the conversation's own, or a sampled one."""
        symbols: list[tuple[object, bool]] = [(SAMPLED, False)] * length
        for turn, (start, _) in enumerate(bounds):
            at = start
            for index, passage in enumerate(who.turns[turn].prompt):
                for offset in range(passage.tokens):
                    own = not passage.text
                    place = (who.template, turn, index) if own else passage.text
                    symbols[at] = ((place, offset), own)
                    at += 1
        return symbols

    def _kind(self, key: object) -> int:
        return self._kinds.setdefault(key, len(self._kinds))
