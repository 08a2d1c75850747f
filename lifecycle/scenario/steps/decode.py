"""``decode``: forwards of one request, a token each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.protocol import ActionRefused
from replaylife.lifecycle.scenario.fields import Name, Tokens
from replaylife.lifecycle.scenario.steps.base import StepBody

if TYPE_CHECKING:
    from replaylife.lifecycle.actions import Action
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Decode(StepBody):
    """``n`` decode forwards of one request."""

    key: ClassVar[str] = "decode"

    request: Name
    """The request."""
    n: Tokens
    """How many forwards, a token each."""
    retract_every: Tokens | None = None
    """After every so many of them, but not after the last, retract the request and bring it back."""

    @property
    def num_actions(self) -> int:
        """One per forward, and three per retraction: retract, admit, prefill what is left."""
        return self.n + 3 * self._retractions

    @property
    def _retractions(self) -> int:
        return 0 if self.retract_every is None else (self.n - 1) // self.retract_every

    def rehearse(self, stage: Stage) -> None:
        """Only after the prompt; a witness has a limit."""
        life = stage.decoding(self.request, "decode")
        if life is None:
            return
        life.decoded += self.n + self._retractions  # a token more is fed at each return
        stage.fit_witness(self.request, life.length - 1)

    def actions(self, scene: Scene) -> Iterator[actions.Action]:
        """``n`` forwards of one row, interrupted as often as asked for."""
        for number in range(1, self.n + 1):
            yield actions.Forward((self.request,))
            if self.retract_every is not None and number % self.retract_every == 0 and number < self.n:
                yield from self._leave_and_return(scene)

    def _leave_and_return(self, scene: Scene) -> Iterator[Action]:
        yield actions.Retract(self.request)
        yield actions.Admit(self.request, tuple(scene.transcripts[self.request]))
        request = scene.snapshot.request(self.request)
        if request is None:
            raise ActionRefused(f"decode {self.request}: its return was rejected; leave it more room")
        yield actions.Prefill(self.request, request.prompt_len - request.executed)
