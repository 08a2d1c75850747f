"""``evict``: free the least recently used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from pydantic import model_validator

from replaylife.lifecycle import actions
from replaylife.lifecycle.scenario.fields import Tokens
from replaylife.lifecycle.scenario.steps.base import StepBody

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene


class Evict(StepBody):
    """Evict the least recently used: states, copies in host memory, or leaves until tokens are freed."""

    key: ClassVar[str] = "evict"

    states: Tokens | None = None
    """How many states; their nodes keep the key-value (tombstones)."""
    kv_tokens: Tokens | None = None
    """How many key-value tokens at least, by removing leaves."""
    host: Tokens | None = None
    """How many copies in host memory."""

    @model_validator(mode="after")
    def _one_kind(self) -> Evict:
        if sum(amount is not None for amount in (self.states, self.kv_tokens, self.host)) != 1:
            raise ValueError("need exactly one of states, kv_tokens, host")
        return self

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """Evict one of them."""
        if self.states is not None:
            yield actions.EvictStates(self.states)
        elif self.kv_tokens is not None:
            yield actions.EvictKv(self.kv_tokens)
        elif self.host is not None:
            yield actions.EvictHost(self.host)
