"""Goes through a scenario's steps by lengths alone, and says which cannot happen where they stand."""

from __future__ import annotations

from collections.abc import Sequence

from replaylife.lifecycle.config import ModelConfig
from replaylife.lifecycle.scenario.errors import Problem
from replaylife.lifecycle.scenario.schema import Step
from replaylife.lifecycle.scenario.stage import Stage


def rehearse(model: ModelConfig, steps: Sequence[tuple[int, Step]]) -> list[Problem]:
    """Return what cannot happen in this order, whatever the cache does; the engine refuses the rest."""
    stage = Stage(model)
    for line, step in steps:
        stage.line = line
        step.body.rehearse(stage)
    return stage.problems
