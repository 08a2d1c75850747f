"""``overlap``: decode steps of which one is always scheduled before the one before it commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.fields import Name, Tokens
from replaylife.lifecycle.scenario.steps.base import StepBody

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Overlap(StepBody):
    """``n`` overlapped decode steps of the same rows (``cache.overlap: on``)."""

    key: ClassVar[str] = "overlap"

    decode: Annotated[list[Name], Field(min_length=1)]
    """Requests that decode a token each, in row order."""
    n: Tokens
    """How many steps."""
    in_flight: Annotated[int, Field(ge=0, le=1)] = 0
    """Steps left scheduled and not executed at the end."""

    @property
    def num_actions(self) -> int:
        """Three per step but those left in flight."""
        return 3 * self.n - 2 * self.in_flight

    def rehearse(self, stage: Stage) -> None:
        """Only after the prompts."""
        for name in self.decode:
            life = stage.decoding(name, "decode")
            if life is not None:
                life.decoded += self.n - self.in_flight

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """Schedule one ahead, then execute and commit the one before."""
        rows = tuple(self.decode)
        yield actions.Schedule(rows)
        for _ in range(self.n - 1):
            yield actions.Schedule(rows)
            yield actions.Execute()
            yield actions.Commit()
        if not self.in_flight:
            yield actions.Execute()
            yield actions.Commit()
