"""``match``: what a prompt would reuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from replaylife.lifecycle import actions
from replaylife.lifecycle.events import Matched
from replaylife.lifecycle.scenario.fields import Count, Name, Prompt
from replaylife.lifecycle.scenario.steps.base import StepBody

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class Match(StepBody):
    """What a prompt would reuse: ``kv`` tokens in the tree, a state of ``state`` tokens. Changes nothing."""

    key: ClassVar[str] = "match"

    prompt: Prompt
    """The prompt, as in `admit`."""
    continues: Name | None = None
    """The request whose tokens come before it."""
    kv: Count | None = None
    """Tokens whose key-value is in the tree."""
    state: Count
    """Tokens of the deepest state to reuse; 0 if there is none."""

    def rehearse(self, stage: Stage) -> None:
        """What it continues is known."""
        if self.continues is not None:
            stage.find(self.continues)

    def actions(self, scene: Scene) -> Iterator[actions.Action]:
        """Look."""
        yield actions.Probe(scene.prompt(self.prompt, "match", self.continues))

    def judge(self, scene: Scene) -> list[str]:
        """Compare both lengths."""
        met = next(event for event in scene.events if isinstance(event, Matched))
        wanted = {"key-value": (met.kv_len, self.kv), "state": (met.state_len, self.state)}
        return [
            f"match: {what} found {found}, expected {expected}"
            for what, (found, expected) in wanted.items()
            if expected is not None and found != expected
        ]
