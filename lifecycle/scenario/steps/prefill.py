"""``prefill``: prompt tokens, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from replaylife.lifecycle import actions
from replaylife.lifecycle.protocol import ActionRefused
from replaylife.lifecycle.scenario.fields import Name, Tokens
from replaylife.lifecycle.scenario.steps.base import StepBody

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Prefill(StepBody):
    """Prompt tokens, chunk by chunk; one chunk with all that is left if none are given."""

    key: ClassVar[str] = "prefill"

    request: Name
    """The request."""
    chunks: Annotated[list[Tokens], Field(min_length=1, max_length=1024)] | None = None
    """Tokens of each chunk."""

    @property
    def num_actions(self) -> int:
        """One per chunk."""
        return len(self.chunks or [0])

    def rehearse(self, stage: Stage) -> None:
        """Something is left of the prompt, and not less than the chunks."""
        life = stage.running(self.request)
        if life is None:
            return
        if life.certain:
            stage.complain(f"the prompt of {self.request!r} is prefilled already")
        elif self.chunks is None:
            life.complete = life.certain = True
        else:
            life.prefilled += sum(self.chunks)
            if life.prefilled > life.prompt_len:
                stage.complain(
                    f"chunks of {self.request!r} add up to {life.prefilled} tokens, "
                    f"its prompt has {life.prompt_len}"
                )
            life.certain = life.prefilled >= life.prompt_len
            life.complete = life.may_hit or life.certain

    def actions(self, scene: Scene) -> Iterator[actions.Action]:
        """Prefill the chunks, or what is left."""
        if self.chunks is not None:
            yield from (actions.Prefill(self.request, count) for count in self.chunks)
            return
        request = scene.snapshot.request(self.request)
        if request is None:
            raise ActionRefused(f"prefill {self.request}: it is not running (its admission was rejected)")
        yield actions.Prefill(self.request, request.prompt_len - request.executed)
