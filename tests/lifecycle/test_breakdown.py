"""An engine that breaks down is a finding; an error of ours, or of the configuration, is not."""

from __future__ import annotations

from typing import Any

import pytest

from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.protocol import CannotExpress
from replaylife.lifecycle.scenario.player import Failed, Player

from .support import shipped


class BreaksAt:
    """An engine that raises ``error`` instead of applying its third action."""

    def __init__(self, error: Exception | None) -> None:
        scenario = shipped("multiturn")
        self._engine = EngineFactory(EngineConfig(scenario.model, scenario.cache)).build()
        self._error, self._applied = error, 0

    def apply(self, action: Any) -> Any:
        self._applied += 1
        if self._applied == 3 and self._error is not None:
            raise self._error
        return self._engine.apply(action)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def player(error: Exception | None) -> Player:
    return Player(shipped("multiturn"), BreaksAt(error))  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [ValueError("no such slot"), RuntimeError("slot 3 is gone")])
def test_what_the_engine_raises_fails_the_run_at_its_line_and_keeps_what_came_before(
    error: Exception,
) -> None:
    played = player(error)
    verdict = played.run()
    assert verdict.steps == 2
    assert not verdict.held
    assert verdict.failures == [Failed(11, f"the engine broke down: {error}")]


def test_an_engine_that_raises_nothing_plays_to_the_end() -> None:
    verdict = player(None).run()
    assert (verdict.steps, verdict.held) == (47, True)


def test_what_the_configuration_cannot_say_is_passed_on() -> None:
    with pytest.raises(CannotExpress, match="too short"):
        player(CannotExpress("too short")).run()


def test_an_error_in_a_check_is_not_taken_for_the_engine_s() -> None:
    played = player(None)

    class Broken:
        def check(self, transition: Any) -> Any:
            raise ValueError(f"a defect of the checker in step {transition.step}")

    played._checker = Broken()  # type: ignore[assignment]
    with pytest.raises(ValueError, match="a defect of the checker in step 1"):
        played.run()
