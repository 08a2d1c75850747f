"""``verify``: whole steps of speculative decoding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.fields import Tokens
from replaylife.lifecycle.scenario.steps.windowed import Windowed

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Verify(Windowed):
    """``n`` verify steps: a window of tokens goes through the model, the first ``keep`` of them are kept."""

    key: ClassVar[str] = "verify"

    n: Tokens = 1
    """How many steps."""

    @property
    def num_actions(self) -> int:
        """One per step."""
        return self.n

    def rehearse(self, stage: Stage) -> None:
        """As its windows."""
        self.rehearse_windows(stage, self.n)

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """``n`` verify steps of the same rows."""
        yield from (actions.Verify(self.windows) for _ in range(self.n))
