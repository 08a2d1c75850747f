"""``decode``: forwards of one request, a token each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.fields import Name, Tokens
from replaylife.lifecycle.scenario.steps.base import StepBody

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Decode(StepBody):
    """``n`` decode forwards of one request."""

    key: ClassVar[str] = "decode"

    request: Name
    """The request."""
    n: Tokens
    """How many forwards, a token each."""

    @property
    def num_actions(self) -> int:
        """One per forward."""
        return self.n

    def rehearse(self, stage: Stage) -> None:
        """Only after the prompt; a witness has a limit."""
        life = stage.decoding(self.request, "decode")
        if life is None:
            return
        life.decoded += self.n
        stage.fit_witness(self.request, life.length - 1)

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """``n`` forwards of one row."""
        yield from (actions.Forward((self.request,)) for _ in range(self.n))
