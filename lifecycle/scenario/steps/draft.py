"""``draft``: a verify step whose windows stay open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.steps.windowed import Windowed

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Draft(Windowed):
    """Run a verify step's windows and leave them open; ``commit`` keeps and rejects."""

    key: ClassVar[str] = "draft"

    def rehearse(self, stage: Stage) -> None:
        """As its windows."""
        self.rehearse_windows(stage, 1)

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """Open."""
        yield actions.Draft(self.windows)
