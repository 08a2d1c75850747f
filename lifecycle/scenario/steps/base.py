"""What a step of a scenario is: its fields, whether it can happen here, what it does, what it judges."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle.scenario.fields import Name, Strict

if TYPE_CHECKING:
    from replaylife.lifecycle.actions import Action
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class StepBody(Strict):
    """What stands under a step's key. The fields are the schema, each with its description below it."""

    key: ClassVar[str]

    @classmethod
    def summary(cls) -> str:
        """Return the first paragraph of the step's description, on one line."""
        return " ".join(cleandoc(cls.__doc__ or "").split("\n\n")[0].split())

    @property
    def num_actions(self) -> int:
        """Actions that the step will come to, as far as its fields tell (for a progress bar)."""
        return 1

    def rehearse(self, stage: Stage) -> None:
        """Complain to ``stage`` of what cannot happen here, whatever the cache does, and update its lives.

        Runs before anything is played, by lengths alone.
        """

    def actions(self, scene: Scene) -> Iterator[Action]:  # noqa: ARG002
        """Yield the actions; each is applied before the next is asked for. Changes transcripts only."""
        yield from ()

    def judge(self, scene: Scene) -> list[str] | None:  # noqa: ARG002
        """Return a sentence for each expectation that does not hold; ``None`` if there is none to judge."""
        return None

    def announces_violations(self, scene: Scene) -> bool:  # noqa: ARG002
        """Whether the step expects that the last action broke an invariant."""
        return False


class OfRequest(StepBody):
    """A step that names nothing but its request."""

    key: ClassVar[str]

    request: Name
    """The request."""
