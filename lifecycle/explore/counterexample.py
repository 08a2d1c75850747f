"""What a search found, as a scenario that anybody can play: the shortest way there, and what it does next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from replaylife.lifecycle.actions import Commit, Execute, Finish, Forward, Prefill
from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.explore.schema import Scope
from replaylife.lifecycle.explore.search import Found, Trouble
from replaylife.lifecycle.explore.world import factory_of
from replaylife.lifecycle.snapshot import Violation
from replaylife.lifecycle.wander.moves import Move, Open, Passage
from replaylife.lifecycle.wander.shrink import as_scenario
from replaylife.lifecycle.wander.walk import Walk

REPLY = 4  # decode steps of the turns that show what the damage does
OWN = 3  # tokens that they add


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The shortest path to a violation, and what may come after it.

    ``moves`` end with the move that broke something; ``aftermath`` lets every conversation go on for a turn,
    so that whatever answers wrongly does so in the scenario. ``scenario`` is both as YAML.
    """

    moves: tuple[Move, ...]
    aftermath: tuple[Move, ...]
    violations: tuple[Violation, ...]
    breakdown: str
    scenario: str


def counterexample(scope: Scope, faults: Sequence[str], found: Found, trouble: Trouble) -> Counterexample:
    """Return a trouble as a scenario. It is played without tensors to see what can come after it."""
    factory = factory_of(scope, tuple(faults))
    moves = tuple(found.way_to(trouble))
    walk = Walk(factory)
    aftermath: tuple[Move, ...] = ()
    if not trouble.breakdown:
        for move in moves:
            walk.take(move)
        aftermath = tuple(_aftermath(walk))
    what = trouble.violations[0] if trouble.violations else None
    subject = "the engine breaks down" if what is None else f"{what.invariant} of {what.subject}"
    title = f"{subject} after {len(moves)} actions, found by exploring"
    config: EngineConfig = replace(factory.config, backend="none")
    scenario = as_scenario(config, factory.faults, [*moves, *aftermath], title)
    return Counterexample(moves, aftermath, trouble.violations, trouble.breakdown, scenario)


def _aftermath(walk: Walk) -> Iterator[Move]:
    """Finish who is running, then one more turn of each conversation that has come to an end."""
    yield from _land(walk)
    yield from _finish(walk)
    for name in list(walk.cast.ended):
        yield from _next_turn(walk, name, f"{name}.next")


def _next_turn(walk: Walk, name: str, turn: str) -> Iterator[Move]:
    """A turn that reuses what the one before has left, with a reply of some tokens."""
    opening = Open(turn, (Passage(OWN),), name)
    if not _took(walk, opening):
        return
    yield opening
    for move in (_whole(walk, turn), *[Forward((turn,))] * REPLY, Finish(turn)):
        if move is None or not _took(walk, move):
            return
        yield move


def _land(walk: Walk) -> Iterator[Move]:
    """Take the steps in flight to their commit."""
    while walk.engine.snapshot().in_flight:
        if _took(walk, Execute()):
            yield Execute()
        if not _took(walk, Commit()):
            return
        yield Commit()


def _finish(walk: Walk) -> Iterator[Move]:
    for name in [view.id for view in walk.engine.snapshot().requests]:
        prefill = _whole(walk, name)
        if prefill is not None and _took(walk, prefill):
            yield prefill
        if _took(walk, Finish(name)):
            yield Finish(name)


def _whole(walk: Walk, name: str) -> Prefill | None:
    view = walk.engine.snapshot().request(name)
    if view is None or view.prompt_len <= view.scheduled:
        return None
    return Prefill(name, view.prompt_len - view.scheduled)


def _took(walk: Walk, move: Move) -> bool:
    """Take a move; a broken engine may break down on what comes after, which ends the story."""
    try:
        return walk.take(move) is not None
    except (ValueError, KeyError, RuntimeError, IndexError, AssertionError):
        return False
