"""``finish``: the end of a request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.steps.base import OfRequest

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Finish(OfRequest):
    """End a request and donate its slot to the tree (cache_finished_req)."""

    key: ClassVar[str] = "finish"

    def rehearse(self, stage: Stage) -> None:
        """Only after the prompt."""
        life = stage.decoding(self.request, "finish")
        if life is not None:
            life.finished = True

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """Finish."""
        yield actions.Finish(self.request)
