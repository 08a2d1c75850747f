"""The contract between an engine and everything that drives or checks it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from replaylife.lifecycle.actions import Action
from replaylife.lifecycle.events import Event
from replaylife.lifecycle.snapshot import Changed, Snapshot, Transition


class ActionRefused(Exception):  # noqa: N818 - a refusal is an answer, not a defect
    """The action is not enabled in the engine's present state. Nothing has changed."""


class CannotExpress(ValueError):  # noqa: N818 - says what the configuration lacks, no fault of the engine
    """The configuration cannot express what was asked for; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can express; invariants and scenarios that need more are skipped, and said so."""

    replayssm: bool
    numeric: bool
    witness: bool
    steps: bool = True
    speculation: bool = False


class Engine(Protocol):
    """Anything that can live through a scenario."""

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can express."""
        ...

    def apply(self, action: Action) -> tuple[Event, ...]:
        """Apply one action. Raises :class:`ActionRefused`, and changes nothing, when it is not enabled."""
        ...

    def snapshot(self) -> Snapshot:
        """Return the present state."""
        ...

    def changed(self) -> Changed | None:
        """Return what the last action changed, or ``None`` if the engine cannot say."""
        ...

    def enabled(self) -> Iterable[Action]:
        """Return the actions that can be applied now; empty if the engine cannot say."""
        ...


def transit(engine: Engine, action: Action, step: int) -> Transition:
    """Apply one action and return the whole transition, numbered ``step``. Raises what ``apply`` raises."""
    before = engine.snapshot()
    events = engine.apply(action)
    return Transition(step, before, action, events, engine.snapshot(), engine.changed())
