"""Plays moves on an engine: chosen as it goes, or given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from replaylife.lifecycle.actions import Action
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.invariants import Checker
from replaylife.lifecycle.protocol import ActionRefused, Engine, transit
from replaylife.lifecycle.snapshot import Transition, Violation
from replaylife.lifecycle.wander.moves import Cast, Move
from replaylife.lifecycle.wander.wanderer import Habits, Wanderer


class Taken(NamedTuple):
    """One move taken, what it did and what that broke."""

    move: Move
    transition: Transition
    violations: tuple[Violation, ...]


class Walk:
    """An engine, its cast and its invariants. ``taken`` counts the actions applied."""

    def __init__(self, factory: EngineFactory) -> None:
        self.engine: Engine = factory.build()
        self.cache = factory.config.cache
        self.cast = Cast(factory.config.model)
        self.checker = Checker(self.engine.capabilities)
        self.taken = 0

    def take(self, move: Move) -> Taken | None:
        """Take one move; ``None``, and nothing changes, where it makes no sense or is refused."""
        action = self.cast.action(move)
        if action is None:
            return None
        try:
            transition = self._apply(action)
        except ActionRefused:
            return None
        return Taken(move, transition, self.checker.check(transition))

    def wander(self, seed: int, num_actions: int, habits: Habits | None = None) -> Iterator[Taken]:
        """Take ``num_actions`` random legal moves. Raises ``ActionRefused`` where one was not legal."""
        wanderer = Wanderer(self.cast, self.cache, seed, habits)
        for _ in range(num_actions):
            move = wanderer.choose(self.engine.snapshot())
            action = self.cast.action(move)
            if action is None:
                raise ActionRefused(f"{move}: refers to a request that is not there")
            transition = self._apply(action)
            yield Taken(move, transition, self.checker.check(transition))

    def _apply(self, action: Action) -> Transition:
        transition = transit(self.engine, action, self.taken + 1)
        self.taken += 1
        self.cast.listen(action, transition.events)
        return transition


def replay(factory: EngineFactory, moves: Iterable[Move]) -> tuple[Violation, ...]:
    """Take the moves on a fresh engine, leaving out those not possible; return the first violations."""
    walk = Walk(factory)
    for move in moves:
        taken = walk.take(move)
        if taken is not None and taken.violations:
            return taken.violations
    return ()
