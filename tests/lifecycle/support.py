"""Building blocks for tests that play scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import replaylife.scenarios
from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.events import Finished
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.scenario.loader import Scenario, load_scenario
from replaylife.lifecycle.scenario.player import Played, Player
from replaylife.lifecycle.snapshot import Measurement, Snapshot, Violation

SCENARIOS = Path(next(iter(replaylife.scenarios.__path__)))


@cache
def shipped(name: str) -> Scenario:
    return load_scenario(SCENARIOS / f"{name}.yaml")


class Run:
    """One played scenario with everything it showed."""

    def __init__(
        self,
        name: str,
        *,
        backend: str = "none",
        device: str = "cpu",
        faults: tuple[str, ...] = (),
        without_its_faults: bool = False,
        cache: dict[str, Any] | None = None,
        recipe: type[EngineFactory] = EngineFactory,
        **model: Any,
    ) -> None:
        scenario = shipped(name)
        self.scenario = replace(
            scenario,
            model=replace(scenario.model, **model),
            cache=replace(scenario.cache, **(cache or {})),
        )
        config = EngineConfig(self.scenario.model, self.scenario.cache, backend, device)  # type: ignore[arg-type]
        seeded = (*(() if without_its_faults else scenario.faults), *faults)
        self.engine: ReferenceEngine = recipe(config, seeded).build()
        self.player = Player(self.scenario, self.engine)
        self.outcomes = list(self.player.play())
        self.verdict = self.player.verdict
        self.played = [outcome for outcome in self.outcomes if isinstance(outcome, Played)]

    @property
    def first_violations(self) -> tuple[Violation, ...]:
        """The new violations of the first violating step."""
        return next((played.fresh for played in self.played if played.fresh), ())

    @property
    def first_violating_step(self) -> int | None:
        return next((played.transition.step for played in self.played if played.fresh), None)

    def after(self, action: str) -> Snapshot:
        """The snapshot after the first action that reads like this."""
        return next(p.transition.after for p in self.played if str(p.transition.action) == action)

    def tree(self, snapshot: Snapshot | None = None) -> list[tuple[int, int | None]]:
        """(key length, state length) of every node, sorted."""
        snapshot = snapshot or self.engine.snapshot()
        lengths = [
            (node.key.length, None if node.state is None else snapshot.slots[node.state].temporal.length)
            for node in snapshot.nodes
        ]
        return sorted(lengths, key=lambda pair: pair[0])

    def measurements(self, kind: str) -> Iterator[Measurement]:
        for played in self.played:
            yield from (m for m in played.transition.after.measurements if m.kind == kind)

    def finished(self, request: str) -> Finished:
        events = [event for played in self.played for event in played.transition.events]
        return next(e for e in events if isinstance(e, Finished) and e.request == request)
