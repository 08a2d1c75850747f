"""What a search found, as a scenario that anybody can play: the shortest way there, and what it does next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from replaylife.lifecycle.actions import AbortCopy, Commit, Execute, Finish, FinishCopy, Forward, Prefill
from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.explore.found import Found, Trouble
from replaylife.lifecycle.explore.schema import Scope
from replaylife.lifecycle.explore.search import BREAKDOWNS
from replaylife.lifecycle.explore.world import factory_of
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.snapshot import Violation
from replaylife.lifecycle.wander.moves import Move, Open, Passage, Resume, Retry
from replaylife.lifecycle.wander.shrink import as_scenario
from replaylife.lifecycle.wander.walk import Walk

REPLY = 4  # decode steps of the turns that show what the damage does
OWN = 3  # tokens that they add


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The shortest path to a violation, and what may come after it.

    ``moves`` end with the move that broke something; ``aftermath`` lets every conversation go on for a turn,
    and then come newcomers, so that whatever answers wrongly does so. ``scenario`` is both as YAML.
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
    aftermath = () if trouble.breakdown else _what_comes_after(factory, moves, _broken(trouble))
    what = trouble.violations[0] if trouble.violations else None
    subject = "the engine breaks down" if what is None else f"{what.invariant} of {what.subject}"
    title = f"{subject} after {len(moves)} actions, found by exploring"
    config: EngineConfig = replace(factory.config, backend="none")
    scenario = as_scenario(config, factory.faults, [*moves, *aftermath], title)
    return Counterexample(moves, aftermath, trouble.violations, trouble.breakdown, scenario)


def _broken(trouble: Trouble) -> frozenset[str]:
    """The requests whose own states are wrong."""
    return frozenset(violation.subject.removeprefix("request ") for violation in trouble.violations)


def _what_comes_after(
    factory: EngineFactory, moves: Sequence[Move], broken: frozenset[str]
) -> tuple[Move, ...]:
    """Let copies in flight arrive; where the engine breaks down on that or later, let them fail instead."""
    stories = []
    for ending in (FinishCopy, AbortCopy):
        walk = Walk(factory)
        story: list[Move] = []
        for move in moves:
            walk.take(move)
        try:
            for move in _aftermath(walk, ending, broken, moves):
                story.append(move)  # noqa: PERF402 - what came before a breakdown is kept
        except BREAKDOWNS:
            stories.append(tuple(story))
        else:
            return tuple(story)
    return max(stories, key=len)


def _aftermath(
    walk: Walk, ending: type[FinishCopy | AbortCopy], broken: frozenset[str], moves: Sequence[Move]
) -> Iterator[Move]:
    """Let whoever runs or waits finish, then one more turn of each conversation that has ended.

    A request whose own state is wrong replies for some tokens first. The others finish at once: what they go
    on to leave would lie over what they have left.
    """
    yield from _land(walk)
    for copy in walk.engine.snapshot().copies:
        if _took(walk, ending(copy.of)):
            yield ending(copy.of)
    for view in walk.engine.snapshot().requests:
        yield from _go_on(walk, view.id, REPLY if view.id in broken else 0)
    away: list[Resume | Retry] = [*map(Resume, walk.cast.retracted), *map(Retry, walk.cast.rejected)]
    for back in away:
        if _took(walk, back) and back.request in walk.cast.running:
            yield back
            yield from _go_on(walk, back.request, REPLY)
    for name in list(walk.cast.ended):
        yield from _next_turn(walk, name, f"{name}.next")
    yield from _guests(walk, moves)


def _guests(walk: Walk, moves: Sequence[Move]) -> Iterator[Move]:
    """For each text that was shared a newcomer, who takes what the tree has of it."""
    passages = [passage for move in moves if isinstance(move, Open) for passage in move.prompt]
    longest = {passage.text: passage for passage in sorted(passages) if passage.text}
    for text, passage in longest.items():
        opening = Open(f"guest.{text}", (passage, Passage(OWN)))
        if _took(walk, opening):
            yield opening
            yield from _go_on(walk, opening.request, REPLY)


def _next_turn(walk: Walk, name: str, turn: str) -> Iterator[Move]:
    """A turn that reuses what the one before has left, with a reply of some tokens."""
    opening = Open(turn, (Passage(OWN),), name)
    if not _took(walk, opening):
        return
    yield opening
    yield from _go_on(walk, turn, REPLY)


def _land(walk: Walk) -> Iterator[Move]:
    """Take the steps in flight to their commit."""
    while walk.engine.snapshot().in_flight:
        if _took(walk, Execute()):
            yield Execute()
        if not _took(walk, Commit()):
            return
        yield Commit()


def _go_on(walk: Walk, name: str, decode: int) -> Iterator[Move]:
    """Prefill what is left of a request's prompt, decode, finish: as much as is possible."""
    prefill = _whole(walk, name)
    if prefill is not None and _took(walk, prefill):
        yield prefill
    ahead: list[Move] = [*[Forward((name,))] * decode, Finish(name)]
    for move in ahead:
        if _took(walk, move):
            yield move


def _whole(walk: Walk, name: str) -> Prefill | None:
    view = walk.engine.snapshot().request(name)
    if view is None or view.prompt_len <= view.scheduled:
        return None
    return Prefill(name, view.prompt_len - view.scheduled)


def _took(walk: Walk, move: Move) -> bool:
    """Take a move that may be impossible. A broken engine may break down on it, which ends the story."""
    return walk.take(move) is not None
