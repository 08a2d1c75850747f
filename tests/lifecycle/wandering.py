"""Building blocks for tests that let an engine live through random actions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from replaylife.lifecycle.actions import (
    Abort,
    AbortCopy,
    Cancel,
    Commit,
    EvictHost,
    EvictKv,
    EvictStates,
    Execute,
    Finish,
)
from replaylife.lifecycle.config import CacheConfig, EngineConfig, ModelConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.snapshot import Snapshot
from replaylife.lifecycle.wander.moves import Move
from replaylife.lifecycle.wander.shrink import as_scenario, shortest_violation
from replaylife.lifecycle.wander.situations import Coverage
from replaylife.lifecycle.wander.walk import Taken, Walk
from replaylife.lifecycle.wander.wanderer import Habits

from .support import shipped

BREAKDOWNS = (ValueError, KeyError, RuntimeError, IndexError)
# Faults after which an engine may fall over its own books before an invariant has been looked at.
BREAKS_DOWN = {"end-with-steps-in-flight"}
SMALL = CacheConfig(slots=10, kv_tokens=96, ring_length=4, track_interval=6)
POLICIES = [
    replace(SMALL, finish=finish, track=track, replayssm=replayssm)  # type: ignore[arg-type]  # from product
    for finish, track, replayssm in product(("truncate", "fold"), ("snapshot", "fold-only"), (True, False))
]
WITH_GRID = replace(SMALL, ring_length=3, track_interval=4)
STRATEGIES = {
    "no_buffer": SMALL,
    "extra_buffer": replace(WITH_GRID, strategy="extra_buffer", slots=14, page=2, chunk_grid=4),
    "extra_buffer_lazy": replace(WITH_GRID, strategy="extra_buffer_lazy", slots=11, chunk_grid=4),
    "align": replace(WITH_GRID, strategy="align", page=4),
}
# Under overlap more requests at once, so that enough of them decode together.
ROOM = {"no_buffer": (12, 120), "extra_buffer": (20, 128), "extra_buffer_lazy": (14, 128), "align": (12, 120)}


def overlapped(cache: CacheConfig) -> CacheConfig:
    slots, kv_tokens = ROOM[cache.strategy]
    return replace(cache, overlap=True, slots=slots, kv_tokens=kv_tokens)


COMBINATIONS = [
    replace(overlapped(cache) if overlap else cache, graph_rows=graph_rows)
    for cache, overlap, graph_rows in product(STRATEGIES.values(), (False, True), (None, 4))
]
MORE_POLICIES = [
    *(policy for policy in POLICIES if policy != SMALL),
    replace(SMALL, overlap=True, finish="fold"),
    *(replace(cache, replayssm=False, overlap=True) for cache in STRATEGIES.values()),
    *(replace(cache, track="fold-only") for cache in list(STRATEGIES.values())[1:]),
]

# With places outside the pool: host memory, and another pool to transfer to.
WITH_PLACES = [
    replace(cache, host_slots=3, peer_slots=2) for cache in COMBINATIONS if cache.graph_rows is None
]


def name_of(cache: CacheConfig) -> str:
    words = [
        cache.strategy,
        "overlap" if cache.overlap else "",
        "" if cache.graph_rows is None else "graph",
        "fold" if cache.finish == "fold" else "",
        "" if cache.track == "snapshot" else cache.track,
        "" if cache.replayssm else "off",
        "places" if cache.host_slots else "",
    ]
    return ", ".join(word for word in words if word)


def cache_for(fault: str) -> CacheConfig:
    """A small cache with the strategy, the policies and the steps of the fault's own scenario."""
    shown = shipped(FAULTS[fault].scenario).cache
    small = STRATEGIES[shown.strategy]
    return replace(
        small,
        page=small.page if shown.page > 1 else 1,
        finish=shown.finish,
        track=shown.track,
        overlap=shown.overlap,
        graph_rows=shown.graph_rows,
        host_slots=3 if shown.host_slots else 0,
        peer_slots=2 if shown.peer_slots else 0,
    )


def factory(*faults: str, cache: CacheConfig = SMALL, backend: str = "none", **model: Any) -> EngineFactory:
    config = EngineConfig(ModelConfig(**model), cache, backend)  # type: ignore[arg-type]  # a test's own name
    return EngineFactory(config, faults)


class Stroll:
    """A walk of random moves that ends at the first violation, or where a faulty engine breaks down."""

    def __init__(
        self, made: EngineFactory, seed: int, num_actions: int, habits: Habits | None = None
    ) -> None:
        self.factory, self.walk, self.coverage = made, Walk(made), Coverage()
        self.moves: list[Move] = []
        self.broken: Taken | None = None
        self.breakdown: Exception | None = None
        try:
            self._wander(seed, num_actions, habits)
        except BREAKDOWNS as broken_down:
            if not made.faults:
                raise
            self.breakdown = broken_down

    def _wander(self, seed: int, num_actions: int, habits: Habits | None) -> None:
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
        """End all copies, requests and steps in flight, evict everything, and return what is left."""
        engine = self.walk.engine
        for copy in engine.snapshot().copies:
            self._apply(AbortCopy(copy.of))
        for view in engine.snapshot().requests:
            if view.phase != "closing":
                ready = view.committed >= view.prompt_len
                self._apply(Finish(view.id) if ready else Abort(view.id))
        while flight := engine.snapshot().in_flight:
            if any(step.executed_at is None for step in flight):
                self._apply(Execute())
            self._apply(Commit())
        for waiting in engine.snapshot().waiting:
            self._apply(Cancel(waiting.id))
        if engine.snapshot().host_places:
            self._apply(EvictHost(10_000))
        self._apply(EvictStates(10_000))
        self._apply(EvictKv(1_000_000))
        return engine.snapshot()

    def _apply(self, action: Any) -> None:
        taken = self.walk.take(action)
        assert taken is not None
        assert taken.violations == ()
