"""``cancel`` and ``end_session``: a waiting request, or a whole conversation, goes away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.steps.base import OfRequest

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Cancel(OfRequest):
    """Abort a request in the waiting queue: one that was rejected, retracted or transferred."""

    key: ClassVar[str] = "cancel"

    def rehearse(self, stage: Stage) -> None:
        """Only what has been asked for; it does not come back."""
        life = stage.find(self.request)
        if life is not None:
            life.retracted, life.aborted = False, True

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """Cancel."""
        yield actions.Cancel(self.request)


class EndSession(OfRequest):
    """End the conversation whose last turn is this request: all of its branch that nobody shares goes."""

    key: ClassVar[str] = "end_session"

    def rehearse(self, stage: Stage) -> None:
        """Only what has been asked for; it does not come back."""
        life = stage.find(self.request)
        if life is not None:
            life.retracted, life.aborted = False, life.aborted or not life.finished

    def actions(self, scene: Scene) -> Iterator[actions.Action]:
        """End the session of all tokens so far."""
        yield actions.EndSession(self.request, tuple(scene.transcripts[self.request]))
