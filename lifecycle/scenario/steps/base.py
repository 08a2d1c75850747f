"""What a step of a scenario is: its fields, whether it can happen here, what it does, what it judges."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from replaylife.lifecycle.scenario.fields import Name, Strict, Tokens

if TYPE_CHECKING:
    from replaylife.lifecycle.actions import Action, Chunks
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


Rows = Annotated[int, Field(ge=1, le=1024)]


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


class Rowed(StepBody):
    """Rows of one step: decode rows in order, and prefill chunks by request."""

    decode: list[Name] = Field(default_factory=list)
    """Requests that decode a token each, in row order."""
    prefill: dict[Name, Tokens] = Field(default_factory=dict)
    """Prompt tokens that run in the same step, by request."""
    pad_to: Rows | None = None
    """Pad the decode rows to so many, with rows that must do nothing."""

    @property
    def chunks(self) -> Chunks:
        """The prefill chunks as the actions take them."""
        return tuple(self.prefill.items())

    def rehearse_rows(self, stage: Stage, times: int) -> None:
        """Decode rows have their prompts behind them, the others not."""
        if not self.decode and not self.prefill:
            stage.complain("a step needs at least one row under 'decode' or 'prefill'")
        for name in self.decode:
            life = stage.decoding(name, "decode")
            if life is not None:
                life.decoded += times
        for name, count in self.prefill.items():
            life = stage.running(name)
            if life is not None and life.certain:
                stage.complain(f"the prompt of {name!r} is prefilled already")
            elif life is not None:
                life.prefilled += count
                life.certain = life.prefilled >= life.prompt_len
                life.complete = life.may_hit or life.certain
