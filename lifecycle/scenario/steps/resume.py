"""``resume``: a retracted request comes back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.steps.base import OfRequest

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Resume(OfRequest):
    """Admit a retracted request again, with all its tokens so far as its prompt."""

    key: ClassVar[str] = "resume"

    def rehearse(self, stage: Stage) -> None:
        """Only what was retracted; its next life has every token known so far as its prompt."""
        life = stage.find(self.request)
        if life is None:
            return
        if not life.retracted:
            stage.complain(f"request {self.request!r} is not retracted; only a retracted request resumes")
            return
        stage.reenter(self.request)

    def actions(self, scene: Scene) -> Iterator[actions.Action]:
        """Admit again."""
        yield actions.Admit(self.request, tuple(scene.transcripts[self.request]))
