"""``checkpoint``: a checkpoint of a running request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.steps.base import OfRequest

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Checkpoint(OfRequest):
    """Publish a checkpoint of a running request at its committed length (cache_unfinished_req)."""

    key: ClassVar[str] = "checkpoint"

    def rehearse(self, stage: Stage) -> None:
        """Only after the prompt."""
        stage.decoding(self.request, "checkpoint")

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """Publish."""
        yield actions.Checkpoint(self.request)
