"""``execute``: one of the three events of a step under overlap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.steps.base import StepBody

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Execute(StepBody):
    """Write the tensors of the oldest step that is only scheduled."""

    key: ClassVar[str] = "execute"

    def rehearse(self, stage: Stage) -> None:
        """Lengths alone cannot tell what is in flight; the engine refuses what is not."""

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """One execute."""
        yield actions.Execute()
