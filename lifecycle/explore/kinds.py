"""What may happen in a scope: each kind of action says which moves of it are possible in a world.

A new kind is one function and one line in ``KINDS``. What it yields need not be legal: the engine's own guard
refuses what is not, and a refusal changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations, product
from typing import TYPE_CHECKING

from replaylife.lifecycle.actions import (
    Abort,
    Admit,
    Checkpoint,
    Commit,
    Draft,
    EvictKv,
    EvictStates,
    Execute,
    Finish,
    Flush,
    Forward,
    Prefill,
    Retract,
    Schedule,
    Verify,
    Windows,
)
from replaylife.lifecycle.explore.kinds_outside import KINDS_OUTSIDE
from replaylife.lifecycle.explore.options import Kind, Option, Options, as_it_is, ready
from replaylife.lifecycle.snapshot import RequestView
from replaylife.lifecycle.wander.moves import Resume, Retry

if TYPE_CHECKING:
    from replaylife.lifecycle.explore.world import World


def _admit(world: World) -> Options:
    """The next turn of every conversation between two turns; of alike ones not yet begun only the first."""
    begun_by_template: set[int] = set()
    for who, progress in world.idle():
        if progress.turn == 0:
            if world.symmetry and who.template in begun_by_template:
                continue
            begun_by_template.add(who.template)
        opening = who.opening(progress.turn)
        tokens = (*progress.tokens, *world.added(who, progress.turn))
        yield Option(opening, Admit(opening.request, tokens))


def _retry(world: World) -> Options:
    """Admissions that were rejected, once more."""
    for name, tokens in world.rejected():
        yield Option(Retry(name), Admit(name, tokens))


def _resume(world: World) -> Options:
    """Retracted requests, with all their tokens."""
    for name, tokens in world.retracted():
        yield Option(Resume(name), Admit(name, tokens))


def _waiting(world: World) -> list[RequestView]:
    views = world.snapshot.requests
    return [v for v in views if v.scheduled < v.prompt_len and v.phase != "closing"]


def _decoding(world: World) -> list[RequestView]:
    views = world.snapshot.requests
    return [v for v in views if v.scheduled >= v.prompt_len and v.phase != "closing" and world.may_decode(v)]


def _chunks(world: World, view: RequestView) -> list[int]:
    left = view.prompt_len - view.scheduled
    return [*(size for size in world.chunks if size < left), left]


def _prefill(world: World) -> Options:
    """A chunk of one request: of each size, and all that is left."""
    if not world.snapshot.in_flight:
        for view in _waiting(world):
            yield from (as_it_is(Prefill(view.id, size)) for size in _chunks(world, view))


def _decode(world: World) -> Options:
    """One decode step of one request."""
    if not world.snapshot.in_flight:
        yield from (as_it_is(Forward((view.id,))) for view in _decoding(world))


def _batch(world: World) -> Options:
    """One step of several decode rows, or of a decode row and a chunk of another request."""
    if not world.snapshot.in_flight:
        yield from (as_it_is(Forward(rows, chunks)) for rows, chunks in _together(world))


def _prefill_batch(world: World) -> Options:
    """One step of chunks of two requests, in either order."""
    if not world.snapshot.in_flight:
        for one, other in permutations(_waiting(world), 2):
            for sizes in product(_chunks(world, one), _chunks(world, other)):
                yield as_it_is(Forward((), ((one.id, sizes[0]), (other.id, sizes[1]))))


def _together(world: World) -> Iterator[tuple[tuple[str, ...], tuple[tuple[str, int], ...]]]:
    rows = [view.id for view in _decoding(world)]
    for size in range(2, len(rows) + 1):
        yield from ((some, ()) for some in combinations(rows, size))
    for view in _waiting(world):
        for size in _chunks(world, view):
            yield from (((row,), ((view.id, size),)) for row in rows)


def _schedule(world: World) -> Options:
    """Decide on a step of one request: a decode row or a chunk."""
    yield from (as_it_is(Schedule((view.id,))) for view in _decoding(world))
    for view in _waiting(world):
        for size in _chunks(world, view):
            yield as_it_is(Schedule((), ((view.id, size),)))


def _schedule_batch(world: World) -> Options:
    """Decide on a step of several requests."""
    yield from (as_it_is(Schedule(rows, chunks)) for rows, chunks in _together(world))


def _execute(world: World) -> Options:
    """Write the tensors of the oldest scheduled step."""
    if any(step.executed_at is None for step in world.snapshot.in_flight):
        yield as_it_is(Execute())


def _commit(world: World) -> Options:
    """The host sees the oldest step."""
    if world.snapshot.in_flight and world.snapshot.in_flight[0].executed_at is not None:
        yield as_it_is(Commit())


def _checkpoint(world: World) -> Options:
    """Publish a running request's state."""
    yield from (as_it_is(Checkpoint(view.id)) for view in ready(world))


def _fold(world: World) -> Options:
    """Fold what is pending in a ring."""
    slots = world.snapshot.slots
    for view in ready(world):
        if view.slot is not None and slots[view.slot].write_pos:
            yield as_it_is(Flush(view.id))


def _finish(world: World) -> Options:
    """End a request and cache its state."""
    yield from (as_it_is(Finish(view.id)) for view in ready(world))


def _retract(world: World) -> Options:
    """Take a request's memory away; it may be resumed."""
    yield from (as_it_is(Retract(v.id)) for v in world.snapshot.requests if v.phase != "closing")


def _abort(world: World) -> Options:
    """End a request, and its conversation, without caching."""
    yield from (as_it_is(Abort(v.id)) for v in world.snapshot.requests if v.phase != "closing")


def _evict_states(world: World) -> Options:
    """Evict the least recently used state."""
    if any(node.state is not None and not node.state_lock for node in world.snapshot.nodes):
        yield as_it_is(EvictStates(1))


def _evict_kv(world: World) -> Options:
    """Evict the least recently used leaf."""
    if any(not node.kv_lock for node in world.snapshot.nodes):
        yield as_it_is(EvictKv(1))


def _windows(world: World) -> Iterator[Windows]:
    """A window of each size for one request, each number of its tokens kept."""
    if world.snapshot.in_flight:
        return
    for view in _decoding(world):
        for size in world.windows:
            if world.may_decode(view, size):
                yield from (((view.id, size, keep),) for keep in range(1, size + 1))


def _verify(world: World) -> Options:
    """A verify window, from schedule to commit."""
    yield from (as_it_is(Verify(rows)) for rows in _windows(world))


def _verify_batch(world: World) -> Options:
    """One step of verify windows of two requests."""
    for one, other in combinations(_windows(world), 2):
        if one[0][0] != other[0][0]:
            yield as_it_is(Verify((*one, *other)))


def _draft(world: World) -> Options:
    """A verify window that stays open until the next commit."""
    yield from (as_it_is(Draft(rows)) for rows in _windows(world))


KINDS: dict[str, Kind] = {
    "admit": _admit,
    "retry": _retry,
    "resume": _resume,
    "prefill": _prefill,
    "decode": _decode,
    "batch": _batch,
    "prefill_batch": _prefill_batch,
    "schedule": _schedule,
    "schedule_batch": _schedule_batch,
    "execute": _execute,
    "commit": _commit,
    "checkpoint": _checkpoint,
    "fold": _fold,
    "finish": _finish,
    "retract": _retract,
    "abort": _abort,
    "evict_states": _evict_states,
    "evict_kv": _evict_kv,
    "verify": _verify,
    "verify_batch": _verify_batch,
    "draft": _draft,
    **KINDS_OUTSIDE,
}
