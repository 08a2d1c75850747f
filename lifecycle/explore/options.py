"""What a kind of action yields, and whom it may be done to: shared by the files that list the kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from replaylife.lifecycle.actions import Action
from replaylife.lifecycle.snapshot import RequestView
from replaylife.lifecycle.wander.moves import Move

if TYPE_CHECKING:
    from replaylife.lifecycle.explore.world import World


class Option(NamedTuple):
    """A move that may be possible, and the action that it comes to here and now."""

    move: Move
    action: Action


Options: TypeAlias = Iterator[Option]
Kind: TypeAlias = "Callable[[World], Options]"


def as_it_is(action: Action) -> Option:
    """Return an action that is a move as well: all but admissions, probes and ends of sessions."""
    return Option(action, action)  # type: ignore[arg-type]


def ready(world: World) -> list[RequestView]:
    """Return the requests whose whole prompt the host has seen prefilled."""
    return [v for v in world.snapshot.requests if v.committed >= v.prompt_len and v.phase != "closing"]
