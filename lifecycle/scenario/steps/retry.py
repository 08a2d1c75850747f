"""``retry``: an admission that was rejected is tried again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.steps.base import OfRequest

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Retry(OfRequest):
    """Admit a request again with the prompt that was rejected."""

    key: ClassVar[str] = "retry"

    def rehearse(self, stage: Stage) -> None:
        """Only what has been asked for once."""
        stage.running(self.request)

    def actions(self, scene: Scene) -> Iterator[actions.Action]:
        """One admission."""
        yield actions.Admit(self.request, tuple(scene.transcripts[self.request]))
