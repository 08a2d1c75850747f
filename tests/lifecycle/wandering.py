"""Building blocks for tests that let an engine live through random actions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from replaylife.lifecycle.actions import Abort, EvictKv, EvictStates, Finish
from replaylife.lifecycle.config import CacheConfig, EngineConfig, ModelConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.snapshot import Snapshot
from replaylife.lifecycle.wander.moves import Move
from replaylife.lifecycle.wander.shrink import as_scenario, shortest_violation
from replaylife.lifecycle.wander.situations import Coverage
from replaylife.lifecycle.wander.walk import Taken, Walk
from replaylife.lifecycle.wander.wanderer import Habits

SMALL = CacheConfig(slots=10, kv_tokens=96, ring_length=4, track_interval=6)
POLICIES = [
    replace(SMALL, finish=finish, track=track, replayssm=replayssm)  # type: ignore[arg-type]  # from product
    for finish, track, replayssm in product(("truncate", "fold"), ("snapshot", "fold-only"), (True, False))
]


def name_of(cache: CacheConfig) -> str:
    return f"{cache.finish}, {cache.track}, {'on' if cache.replayssm else 'off'}"


def factory(*faults: str, cache: CacheConfig = SMALL, backend: str = "none", **model: Any) -> EngineFactory:
    config = EngineConfig(ModelConfig(**model), cache, backend)  # type: ignore[arg-type]  # a test's own name
    return EngineFactory(config, faults)


class Stroll:
    """A walk of random moves that ends at the first violation."""

    def __init__(
        self, made: EngineFactory, seed: int, num_actions: int, habits: Habits | None = None
    ) -> None:
        self.factory, self.walk, self.coverage = made, Walk(made), Coverage()
        self.moves: list[Move] = []
        self.broken: Taken | None = None
        for taken in self.walk.wander(seed, num_actions, habits):
            self.moves.append(taken.move)
            self.coverage.count(taken.transition)
            if taken.violations:
                self.broken = taken
                break

    def explain(self) -> str:
        """The first violation, and the shortest way to it as a scenario."""
        if self.broken is None:
            return "nothing was broken"
        violation = self.broken.violations[0]
        moves = shortest_violation(self.factory, self.moves, violation.invariant)
        title = f"{violation.invariant} of {violation.subject} found by random actions"
        scenario = as_scenario(self.factory.config, self.factory.faults, moves, title)
        return "\n".join(
            (*violation.proof, "", f"after {len(self.moves)} actions, {len(moves)} needed:", scenario)
        )

    def wind_up(self) -> Snapshot:
        """End every request, evict everything, and return what is left."""
        engine = self.walk.engine
        for view in engine.snapshot().requests:
            self._apply(Finish(view.id) if view.phase == "decode" else Abort(view.id))
        self._apply(EvictStates(10_000))
        self._apply(EvictKv(1_000_000))
        return engine.snapshot()

    def _apply(self, action: Any) -> None:
        taken = self.walk.take(action)
        assert taken is not None
        assert taken.violations == ()
