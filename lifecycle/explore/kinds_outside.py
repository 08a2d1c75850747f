"""Kinds of actions on checkpoints outside the pool, and on conversations that are not running."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from replaylife.lifecycle.actions import (
    AbortCopy,
    Cancel,
    EndSession,
    EvictHost,
    FinishCopy,
    Load,
    Offload,
    Transfer,
)
from replaylife.lifecycle.explore.options import Kind, Option, Options, as_it_is, ready
from replaylife.lifecycle.wander.moves import Leave

if TYPE_CHECKING:
    from replaylife.lifecycle.explore.world import World


def _nodes(world: World, *, away: bool) -> Iterator[int]:
    """Nodes with a state and no copy in host memory, or (``away``) the other way round."""
    for node in world.engine.store.tree.nodes():
        if (node.state is None, node.host is None) == (away, not away):
            yield node.id


def _offload(world: World) -> Options:
    """Begin to copy a cached state to host memory."""
    yield from (as_it_is(Offload(node)) for node in _nodes(world, away=False))


def _load(world: World) -> Options:
    """Begin to copy a state back from host memory."""
    yield from (as_it_is(Load(node)) for node in _nodes(world, away=True))


def _transfer(world: World) -> Options:
    """Begin to send a running request to another pool."""
    busy = {name for step in world.snapshot.in_flight for name, _, _ in step.rows}
    yield from (as_it_is(Transfer(view.id)) for view in ready(world) if view.id not in busy)


def _arrive(world: World) -> Options:
    """A copy in flight arrives."""
    yield from (as_it_is(FinishCopy(copy.of)) for copy in world.snapshot.copies)


def _abort_copy(world: World) -> Options:
    """A copy in flight fails."""
    yield from (as_it_is(AbortCopy(copy.of)) for copy in world.snapshot.copies)


def _evict_host(world: World) -> Options:
    """Evict the least recently used copy in host memory."""
    if any(owner.kind == "tree" for place in world.snapshot.host_places for owner in place.owners):
        yield as_it_is(EvictHost(1))


def _cancel(world: World) -> Options:
    """A request that waits, rejected or retracted, is aborted: its conversation is over."""
    for waiting in (world.rejected(), world.retracted()):
        yield from (as_it_is(Cancel(name)) for name, _ in waiting)


def _end_session(world: World) -> Options:
    """A conversation ends between two turns, and what no other shares of it is released."""
    for who, progress in world.idle():
        if progress.turn:
            name = who.request(progress.turn - 1)
            yield Option(Leave(name), EndSession(name, progress.tokens))


KINDS_OUTSIDE: dict[str, Kind] = {
    "offload": _offload,
    "load": _load,
    "transfer": _transfer,
    "arrive": _arrive,
    "abort_copy": _abort_copy,
    "evict_host": _evict_host,
    "cancel": _cancel,
    "end_session": _end_session,
}
