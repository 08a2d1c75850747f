"""``schedule``: the first of the three events of a step under overlap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.steps.base import Rowed

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Schedule(Rowed):
    """Decide on a step without running it (``cache.overlap: on``)."""

    key: ClassVar[str] = "schedule"

    def rehearse(self, stage: Stage) -> None:
        """As its rows."""
        self.rehearse_rows(stage, 1)

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """One schedule."""
        yield actions.Schedule(tuple(self.decode), self.chunks, self.pad_to)
