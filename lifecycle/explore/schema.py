"""The language of scopes: what a YAML file may say about a small world."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from replaylife.lifecycle.explore.kinds import KINDS
from replaylife.lifecycle.names import nearest
from replaylife.lifecycle.scenario.fields import FaultId, Name, Prompt, Strict, Switch, Tokens
from replaylife.lifecycle.scenario.schema import CacheSection
from replaylife.lifecycle.wander.situations import SITUATIONS

MAX_DECODE = 64
_VISIBLE = [name for name in SITUATIONS if name != "row-moved"]  # rows are no part of a ledger-only state


def _known(kind: str, names: Any) -> BeforeValidator:
    def check(value: Any) -> Any:
        if isinstance(value, str) and value not in names:
            raise ValueError(f"no {kind} is named {value!r}{nearest(value, names)}")
        return value

    return BeforeValidator(check)


ActionName = Annotated[str, _known("action of a scope", KINDS)]
SituationId = Annotated[str, _known("situation", _VISIBLE)]


class TurnSection(Strict):
    """One turn of a conversation."""

    prompt: Prompt
    """What the turn adds: a number of own tokens, or a list of numbers and shared texts."""
    decode: Annotated[int, Field(ge=0, le=MAX_DECODE)] = 0
    """Decode steps that the turn may take at most."""


class ConversationSection(Strict):
    """A template of conversations that are alike."""

    name: Name
    """Name of the conversation, or the beginning of the names where there are several."""
    count: Annotated[int, Field(ge=1, le=6)] = 1
    """How many there are."""
    turns: Annotated[list[TurnSection], Field(min_length=1, max_length=6)]
    """Its turns, each of which continues the one before."""


class Scope(Strict):
    """A small world: what is built, who may come, what may happen, where it ends."""

    title: Annotated[str, Field(min_length=1, max_length=200)]
    """One line that says what is explored."""
    description: Annotated[str, Field(max_length=4000)] = ""
    """More, for readers."""
    cache: CacheSection = Field(default_factory=CacheSection)
    """Slots, ring, grids and policies, as in a scenario; a default for each."""
    faults: list[FaultId] = Field(default_factory=list)
    """Faults to seed, by id."""
    conversations: Annotated[list[ConversationSection], Field(min_length=1, max_length=6)]
    """Who may come."""
    chunks: Annotated[list[Tokens], Field(max_length=8)] = Field(default_factory=list)
    """Sizes that a prefill chunk may have, beside all that is left."""
    windows: Annotated[list[Annotated[int, Field(ge=1, le=64)]], Field(max_length=4)] = Field(
        default_factory=list
    )
    """Sizes that a verify window may have; every number of its tokens may be kept."""
    actions: Annotated[list[ActionName], Field(min_length=1)]
    """What may happen."""
    at_most: dict[ActionName, Annotated[int, Field(ge=0, le=1000)]] = Field(default_factory=dict)
    """How often an action may happen on one path; without an entry, as often as it is possible."""
    depth: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Actions on a path at most; none: until nothing new can happen."""
    reaches: list[SituationId] = Field(default_factory=list)
    """Situations that the exploration must have been through."""
    symmetry: Switch = True
    """Count states that differ only in the names of slots and alike requests as one."""

    @model_validator(mode="after")
    def _consistent(self) -> Scope:
        named = [name for template in self.conversations for name in _names(template)]
        twice = sorted({name for name in named if named.count(name) > 1})
        if twice:
            raise ValueError(f"conversation {twice[0]!r} is there twice; rename one")
        unused = sorted(set(self.at_most) - set(self.actions))
        if unused:
            raise ValueError(f"at_most bounds {unused[0]!r}, which is not among the actions; add it there")
        parts = {"schedule", "schedule_batch", "execute", "commit"} & set(self.actions)
        if "draft" in self.actions:
            parts.discard("commit")  # it closes an open window, too
        if parts and not self.cache.overlap:
            raise ValueError(f"action {min(parts)!r} needs cache.overlap: on")
        verifies = sorted({"verify", "verify_batch", "draft"} & set(self.actions))
        if verifies and not self.windows:
            raise ValueError(f"action {verifies[0]!r} needs sizes of windows; add windows: [2]")
        moves = sorted({"offload", "load", "evict_host"} & set(self.actions))
        if moves and not self.cache.host_slots:
            raise ValueError(f"action {moves[0]!r} needs cache.host_slots of at least 1")
        if "transfer" in self.actions and not self.cache.peer_slots:
            raise ValueError("action 'transfer' needs cache.peer_slots of at least 1")
        return self


def _names(template: ConversationSection) -> list[str]:
    if template.count == 1:
        return [template.name]
    return [f"{template.name}{number + 1}" for number in range(template.count)]
