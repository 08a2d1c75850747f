"""``fold``: empty a request's ring into its state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.steps.base import OfRequest

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Fold(OfRequest):
    """Fold whatever is pending in a request's ring."""

    key: ClassVar[str] = "fold"

    def rehearse(self, stage: Stage) -> None:
        """Only after the prompt."""
        stage.decoding(self.request, "fold")

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """Flush the ring."""
        yield actions.Flush(self.request)
