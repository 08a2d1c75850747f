"""``admit``: a new request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.fields import Name, Prompt, prompt_len
from replaylife.lifecycle.scenario.steps.base import StepBody

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Admit(StepBody):
    """A new request: its prompt is matched against the tree, a slot and key-value tokens are taken.

    A turn continues an earlier request with ``continues``: its prompt then begins with all of that one's
    tokens, the reply included.
    """

    key: ClassVar[str] = "admit"

    request: Name
    """A name for the request; each name once."""
    prompt: Prompt
    """A number of tokens of its own, or a list of numbers and named texts (`{text: system, tokens: 16}`)."""
    continues: Name | None = None
    """The finished or aborted request that this one is the next turn of."""

    def rehearse(self, stage: Stage) -> None:
        """A name once; what it continues has ended."""
        if self.request in stage.lives:
            first = stage.lives[self.request].admitted
            stage.complain(f"request {self.request!r} was admitted in line {first} already; use another name")
            return
        earlier = 0
        if self.continues is not None:
            before = stage.find(self.continues)
            if before is None:
                return
            if not before.finished and not before.aborted:
                stage.complain(f"{self.continues!r} is not finished; a turn continues a finished one")
                return
            earlier = before.length
        stage.enter(self.request, earlier + prompt_len(self.prompt))

    def actions(self, scene: Scene) -> Iterator[actions.Action]:
        """Admit with the earlier turns' tokens and its own."""
        tokens = scene.prompt(self.prompt, self.request, self.continues)
        scene.transcripts[self.request] = list(tokens)
        yield actions.Admit(self.request, tokens)
