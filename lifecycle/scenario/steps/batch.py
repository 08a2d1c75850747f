"""``batch``: whole steps with several rows, decode and prefill together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.fields import Tokens
from replaylife.lifecycle.scenario.steps.base import Rowed

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Batch(Rowed):
    """``n`` whole steps of several rows; a prefill chunk runs in the first of them."""

    key: ClassVar[str] = "batch"

    n: Tokens = 1
    """How many steps."""

    @property
    def num_actions(self) -> int:
        """One per step."""
        return self.n

    def rehearse(self, stage: Stage) -> None:
        """As its rows."""
        self.rehearse_rows(stage, self.n)

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """Forwards of all rows."""
        rows = tuple(self.decode)
        yield actions.Forward(rows, self.chunks, self.pad_to)
        yield from (actions.Forward(rows, (), self.pad_to) for _ in range(self.n - 1))
