"""Snapshots built anew from pool, tree and requests, knowing nothing of what was built before.

Written apart from the engine's own snapshotter, and more slowly: it looks at everything each time.
"""

from __future__ import annotations

from math import lcm
from typing import Any

from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.snapshot import (
    CopyView,
    NodeView,
    Owner,
    PlaceView,
    RequestView,
    SlotView,
    Snapshot,
    StepView,
    WaitingView,
)
from replaylife.pool import EMPTY


def snapshot_of(engine: ReferenceEngine) -> Snapshot:
    store, cache = engine.store, engine.config.cache
    grid = lcm(cache.page, cache.chunk_grid)
    return Snapshot(
        slots=tuple(_slot(engine, index) for index in range(store.pool.shape.slots)),
        nodes=tuple(_node(engine, node) for node in store.tree.nodes()),
        requests=tuple(_request(request) for request in engine.requests.values()),
        free_slots=tuple(store.pool.allocator._free),
        kv_capacity=store.kv.capacity,
        kv_free=store.kv.capacity - store.kv.num_taken,
        ring_length=cache.ring_length if cache.replayssm else None,
        track_point=grid if cache.strategy == "align" else lcm(grid, cache.track_interval),
        grid=None if cache.strategy == "no_buffer" else grid,
        lru=tuple(node.id for node in store.tree._lru.values()),
        in_flight=tuple(_step(step) for step in engine.stepper.in_flight),
        host_places=_places(engine, "host"),
        host_free=tuple(engine.tier.host._free) if engine.tier.host else (),
        peer_places=_places(engine, "peer"),
        peer_free=tuple(engine.tier.peer._free) if engine.tier.peer else (),
        copies=tuple(_copy(copy) for copy in engine.tier.copies.values()),
        waiting=tuple(
            WaitingView(name, kept.where, kept.place, EMPTY.after(kept.tokens))
            for name, kept in engine.tier.waiting.items()
        ),
    )


def _copy(copy: Any) -> CopyView:
    return CopyView(copy.kind, copy.of, copy.src, copy.dst, copy.locked.id if copy.locked else None)


def _places(engine: ReferenceEngine, where: str) -> tuple[PlaceView, ...]:
    pool, tier = getattr(engine.tier, where), engine.tier
    views = []
    for index, kept in enumerate(pool.places if pool else ()):
        owners = [Owner("free") for place in pool._free if place == index]
        if where == "host":
            holders = sorted(node.id for node in engine.store.tree.nodes() if node.host == index)
            owners += [Owner("tree", str(node)) for node in holders]
        waiting = sorted(n for n, w in tier.waiting.items() if (w.where, w.place) == (where, index))
        owners += [Owner("request", name) for name in waiting]
        kind = "offload" if where == "host" else "transfer"
        owners += [
            Owner("copy", of) for of, c in sorted(tier.copies.items()) if (c.kind, c.dst) == (kind, index)
        ]
        views.append(PlaceView(index, tuple(owners), kept.temporal, kept.conv, kept.written))
    return tuple(views)


def _slot(engine: ReferenceEngine, index: int) -> SlotView:
    pool, store = engine.store.pool, engine.store
    owners = [Owner("reserved")] if index == 0 else []
    owners += [Owner("free") for slot in pool.allocator._free if slot == index]
    owners += [Owner("tree", str(i)) for i in sorted(n.id for n in store.tree.nodes() if n.state == index)]
    names = sorted(n for n, r in engine.requests.items() if index in (r.slot, *r.track_slots))
    owners += [Owner("request", name) for name in names]
    for step in engine.stepper.in_flight:
        copies = [c.dst for row in step.rows for c in row.copies if c.dst not in row.request.track_slots]
        owners += [Owner("step", str(step.number))] if index in copies else []
    loads = [copy.of for copy in engine.tier.copies.values() if (copy.kind, copy.dst) == ("load", index)]
    owners += [Owner("copy", of) for of in loads]
    entry = pool.ledger.slots[index]
    cursor = None if pool.write_pos is None else pool.write_pos[index]
    on_device = cursor if pool.tensors is None else pool.tensors.cursors()
    return SlotView(
        index=index,
        owners=tuple(owners),
        temporal=entry.temporal,
        conv=entry.conv,
        conv_checkpoint=entry.conv_checkpoint,
        ring=tuple(entry.ring[: cursor or 0]),
        write_pos=cursor,
        device_write_pos=on_device[index] if isinstance(on_device, list) else on_device,
        written=entry.written,
    )


def _node(engine: ReferenceEngine, node: Any) -> NodeView:
    return NodeView(
        id=node.id,
        parent=None if node.parent is engine.store.tree.root else node.parent.id,
        key=EMPTY.after(node.key()),
        kv_tokens=len(node.edge),
        state=node.state,
        state_lock=node.state_lock,
        kv_lock=node.kv_lock,
        recency=node.recency,
        published=0 if node.state is None else engine.store.published.get(node.id, 0),
        first_page=node.key()[-len(node.edge) :][: engine.config.cache.page],
    )


def _request(request: Any) -> RequestView:
    return RequestView(
        id=request.id,
        phase=request.phase,
        prompt_len=request.prompt_len,
        scheduled=request.scheduled,
        executed=request.executed,
        committed=request.committed,
        tokens=EMPTY.after(request.tokens[: request.executed]),
        cached=request.cached,
        slot=request.slot,
        track_slots=tuple(request.track_slots),
        stamps=tuple((slot, request.stamps[slot]) for slot in request.stamps),
        locked=request.locked.id if request.locked else None,
        kv_tokens=request.kv_tokens,
        pending_cow=tuple(request.pending_cow) if request.pending_cow else None,
        copies=request.copies,
        drafts=request.drafts,
    )


def _step(step: Any) -> StepView:
    return StepView(
        number=step.number,
        rows=tuple((row.request.id, row.start, row.end) for row in step.rows),
        copies=tuple(copy.dst for row in step.rows for copy in row.copies),
        executed_at=step.executed_at,
    )


def world_of(engine: ReferenceEngine) -> tuple[Any, ...]:
    """Everything an action could change, as plain comparable data: counters, queues and caches included."""
    pool, tree, store = engine.store.pool, engine.store.tree, engine.store
    return (
        engine.snapshot(),
        snapshot_of(engine),
        engine._action,
        pool.step,
        sorted(pool.touched),
        [repr(slot) for slot in pool.ledger.slots],
        None if pool.write_pos is None else list(pool.write_pos),
        [(n.id, n.key(), n.edge, n.state, n.state_lock, n.kv_lock, n.recency) for n in tree.nodes()],
        (tree._clock, tree._next_id, tree.num_kv_tokens, sorted(tree.touched), sorted(tree._slots)),
        (tree.root.kv_lock, tree.root.state_lock),
        (sorted(tree._leaves._heap), sorted(tree._leaves._queued)),
        dict(store.published),
        dict(store.retracted),
        dict(store.rejected),
        (sorted(engine.tier.queue), dict(engine.tier.waiting), repr(engine.tier.copies)),
        (engine.stepper._number, [repr(step) for step in engine.stepper.in_flight]),
        list(engine.stepper._layout._order),
        list(store.events),
        [repr(request) for request in engine.requests.values()],
        sorted(engine._snapshotter.touched_requests),
    )
