"""``abort``: the end of a request without caching."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.steps.base import OfRequest

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Abort(OfRequest):
    """End a request without caching anything more of it."""

    key: ClassVar[str] = "abort"

    def rehearse(self, stage: Stage) -> None:
        """Only while it runs."""
        life = stage.running(self.request)
        if life is not None:
            life.aborted = True

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """Abort."""
        yield actions.Abort(self.request)
