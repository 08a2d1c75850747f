"""The same scenario on two engines: what each cached, kept and evicted, and how that differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from replaylife.engines import adapter_of
from replaylife.lifecycle.actions import Action, Forward
from replaylife.lifecycle.config import CacheConfig, EngineConfig
from replaylife.lifecycle.events import AdmissionRejected, Evicted, Matched
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.protocol import CannotExpress, Engine
from replaylife.lifecycle.scenario.loader import Scenario
from replaylife.lifecycle.scenario.player import Played, Player, Verdict
from replaylife.lifecycle.snapshot import Transition
from replaylife.pool import Fold

Column: TypeAlias = Literal["cached", "keys", "positions", "evictions"]
COLUMNS: tuple[Column, ...] = ("cached", "keys", "positions", "evictions")


class Position(NamedTuple):
    """Where a state stood when its key was published: temporal and conv, and the step that published it."""

    temporal: Fold
    conv: Fold
    step: int


@dataclass(slots=True)
class Portrait:
    """What one engine made of a scenario.

    ``cached`` has the admissions in order, with the tokens taken from the tree (``None``: rejected), and the
    step; ``states`` every key that ever carried a state, with where that stood at first; ``evicted`` the
    states and key-value tokens that were evicted.
    """

    cached: list[tuple[str, int | None, int]] = field(default_factory=list)
    states: dict[Fold, Position] = field(default_factory=dict)
    evicted: tuple[int, int] = (0, 0)
    mixed_since: int | None = None
    verdict: Verdict = field(default_factory=Verdict)

    def look(self, t: Transition) -> None:
        """Take note of one step."""
        for event in t.events:
            if isinstance(event, Matched) and event.request is not None:
                self.cached.append((event.request, event.state_len, t.step))
            elif isinstance(event, AdmissionRejected):
                self.cached.append((event.request, None, t.step))
            elif isinstance(event, Evicted):
                self.evicted = (self.evicted[0] + len(event.slots), self.evicted[1] + event.kv_tokens)
        for node in t.after.nodes:
            if node.state is not None and node.key not in self.states:
                slot = t.after.slots[node.state]
                self.states[node.key] = Position(slot.temporal, slot.conv, t.step)
        if self.mixed_since is None and _mixes_pending(t):
            self.mixed_since = t.step


def _mixes_pending(t: Transition) -> bool:
    """Whether the step ran prefill chunks beside a decode row with records in its ring."""
    action: Action = t.action
    if not isinstance(action, Forward) or not action.chunks:
        return False
    rows = [request for request in t.before.requests if request.id in action.rows]
    return any(request.slot is not None and t.before.slots[request.slot].write_pos for request in rows)


class Difference(NamedTuple):
    """One thing that is not the same: of ``column``, found at ``step`` of the other engine.

    ``key`` is the length of the key concerned (``None`` where there is none), ``ours`` and ``theirs`` what it
    is on either side, in words.
    """

    column: Column
    subject: str
    ours: str
    theirs: str
    key: int | None
    step: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A scenario on the reference engine and on another: portraits and differences, or why it was skipped."""

    scenario: str
    engine: str
    cache: CacheConfig
    skipped: str | None = None
    ours: Portrait = field(default_factory=Portrait)
    theirs: Portrait = field(default_factory=Portrait)
    differences: tuple[Difference, ...] = ()


def compare(scenario: Scenario, engine: str) -> Comparison:
    """Play a scenario on the reference engine's ledger and on ``engine``.

    Raises :class:`~replaylife.engines.EngineUnavailable` where that is not installed.
    """
    config = EngineConfig(scenario.model, scenario.cache)
    try:
        if scenario.faults:
            raise CannotExpress(f"it seeds {', '.join(scenario.faults)} in the reference engine")
        theirs = portray(scenario, adapter_of(engine).build(config))
    except CannotExpress as reason:
        return Comparison(scenario.name, engine, scenario.cache, skipped=str(reason))
    ours = portray(scenario, EngineFactory(config).build())
    found = tuple(differences(ours, theirs))
    return Comparison(scenario.name, engine, scenario.cache, None, ours, theirs, found)


def portray(scenario: Scenario, engine: Engine) -> Portrait:
    """Play a scenario and note what it comes to. Raises ``CannotExpress`` from the engine."""
    player, portrait = Player(scenario, engine), Portrait()
    for outcome in player.play():
        if isinstance(outcome, Played):
            portrait.look(outcome.transition)
    portrait.verdict = player.verdict
    return portrait


def differences(ours: Portrait, theirs: Portrait) -> Iterator[Difference]:
    """Yield what is not the same in two portraits of one scenario."""
    yield from _cached(ours, theirs)
    for key in sorted(ours.states.keys() - theirs.states.keys()):
        step = ours.states[key].step
        yield Difference("keys", f"key {key.length}", "has a state", "none", key.length, step)
    for key in sorted(theirs.states.keys() - ours.states.keys()):
        step = theirs.states[key].step
        yield Difference("keys", f"key {key.length}", "none", "has a state", key.length, step)
    for key in sorted(ours.states.keys() & theirs.states.keys()):
        mine, other = ours.states[key], theirs.states[key]
        if mine[:2] != other[:2]:
            yield Difference(
                "positions",
                f"key {key.length}",
                _standing(mine, key),
                _standing(other, key),
                key.length,
                other.step,
            )
    if ours.evicted != theirs.evicted:
        names = [f"{states} states, {tokens} tokens" for states, tokens in (ours.evicted, theirs.evicted)]
        yield Difference("evictions", "evicted", names[0], names[1], None, 0)


def _cached(ours: Portrait, theirs: Portrait) -> Iterator[Difference]:
    for mine, other in zip(ours.cached, theirs.cached, strict=False):
        if mine[:2] != other[:2]:
            yield Difference(
                "cached", f"request {other[0]}", _taken(mine[1]), _taken(other[1]), mine[1], other[2]
            )
    for request, taken, step in [*ours.cached[len(theirs.cached) :], *theirs.cached[len(ours.cached) :]]:
        yield Difference("cached", f"request {request}", _taken(taken), "not admitted on both", taken, step)


def _taken(tokens: int | None) -> str:
    return "rejected" if tokens is None else f"{tokens} tokens"


def _standing(position: Position, key: Fold) -> str:
    """Say where temporal and conv stand, and whether equally long ones hold other tokens."""
    parts = [
        f"{name} {fold.length}" + (" (other tokens)" if fold.length == key.length and fold != key else "")
        for name, fold in (("temporal", position.temporal), ("conv", position.conv))
    ]
    return ", ".join(parts)
