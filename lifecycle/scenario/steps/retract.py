"""``retract``: take a running request's memory away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.steps.base import OfRequest

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Retract(OfRequest):
    """Take a running request's memory away; ``resume`` brings it back."""

    key: ClassVar[str] = "retract"

    def rehearse(self, stage: Stage) -> None:
        """Only while it runs."""
        life = stage.running(self.request)
        if life is not None:
            life.retracted = True

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """Retract."""
        yield actions.Retract(self.request)
