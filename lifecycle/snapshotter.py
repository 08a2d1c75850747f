"""Builds snapshots, rebuilding only the views that an action touched."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias, TypeVar

from replaylife.lifecycle.host_tier import HostTier
from replaylife.lifecycle.planned import PlannedStep
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.snapshot import Changed, NodeView, Owner, RequestView, SlotView, Snapshot, StepView
from replaylife.lifecycle.snapshot_places import OutsideViews
from replaylife.lifecycle.store import StateStore
from replaylife.pool import EMPTY
from replaylife.radix import Node

T = TypeVar("T")
Holds: TypeAlias = dict[int, tuple[T, ...]]
"""Who has each slot."""

_RESERVED, _FREE = Owner("reserved"), Owner("free")


class Snapshotter:
    """Caches the views of slots, nodes and requests of one engine.

    Owners are read off the free list, the tree and the requests, never booked separately: a slot held
    twice shows two owners, a lost one none.
    """

    def __init__(
        self,
        store: StateStore,
        requests: Mapping[str, Request],
        in_flight: Collection[PlannedStep],
        grid: int | None,
        tier: HostTier,
    ) -> None:
        self._store, self._requests, self._in_flight = store, requests, in_flight
        self._tier, self._outside = tier, OutsideViews(tier)
        self._grid, self._track_point = grid, store.cache.track_point
        self._slots: dict[int, SlotView] = {}
        self._nodes: dict[int, NodeView] = {}
        self._node_views: tuple[NodeView, ...] = ()
        self._views: dict[str, RequestView] = {}
        self._node_holds: Holds[int] = {}
        self._request_holds: Holds[str] = {}
        self._step_holds: Holds[str] = {}
        self._load_holds: dict[int, str] = {}
        self._free_list: tuple[int, ...] = ()
        self._lru: tuple[int, ...] = ()
        self.touched_requests: set[str] = set()
        self._changed_slots: set[int] = set(range(store.pool.shape.slots))

    def take(self) -> tuple[Snapshot, Changed]:
        """Return the present snapshot, and what changed since the last one."""
        self._refresh_flight()
        nodes = self._refresh_nodes()
        requests = self._refresh_requests()
        slots = self._refresh_slots()
        snapshot = Snapshot(
            slots=tuple(self._slots.values()),
            nodes=self._node_views,
            requests=tuple(self._views.values()),
            free_slots=self._free_list,
            kv_capacity=self._store.kv.capacity,
            kv_free=self._store.kv.num_free,
            ring_length=self._store.pool.shape.ring_length,
            track_point=self._track_point,
            grid=self._grid,
            lru=self._lru,
            in_flight=tuple([_view_step(step) for step in self._in_flight]),
            **self._outside.take(),
        )
        return snapshot, Changed(slots, nodes, requests)

    def restore(self, snapshot: Snapshot, *, afresh: bool) -> None:
        """Go on from ``snapshot``, which was taken here, where store and requests are as they were then.

        ``afresh`` says that the last action broke off, so that what is known of the nodes may be wrong.
        """
        nodes, requests = snapshot.nodes, snapshot.requests
        self._slots, self._views = dict(enumerate(snapshot.slots)), {view.id: view for view in requests}
        if afresh or self._node_views is not nodes:
            self._nodes, self._node_views = {view.id: view for view in nodes}, nodes
            self._node_holds = _held_by([(node.state, node.id) for node in nodes if node.state is not None])
        self._request_holds = _held_by([(slot, request.id) for request in requests for slot in request.slots])
        self._step_holds = _held_by_steps(self._in_flight)
        self._free_list, self._lru = snapshot.free_slots, snapshot.lru
        self.touched_requests.clear()
        self._changed_slots.clear()

    def _refresh_flight(self) -> None:
        """Slots that a step in flight has taken for a checkpoint, and that no request owns."""
        if self._tier.copies or self._load_holds:
            loads = {copy.dst: of for of, copy in self._tier.copies.items() if copy.kind == "load"}
            self._changed_slots |= loads.keys() ^ self._load_holds.keys()
            self._load_holds = loads
        if self._in_flight or self._step_holds:
            holds = _held_by_steps(self._in_flight)
            self._changed_slots |= holds.keys() ^ self._step_holds.keys()
            self._step_holds = holds

    def _refresh_nodes(self) -> frozenset[int]:
        tree = self._store.tree
        touched = tree.take_touched()
        if not touched:
            return frozenset()
        old = {node_id: self._nodes.get(node_id) for node_id in touched}
        if all(map(self._stays, touched)):
            for node_id in sorted(touched, key=lambda i: self._nodes[i].key.length):
                node = tree.find(node_id)
                if node is not None:
                    self._nodes[node_id] = self._view_node(node, self._nodes)
        else:
            ordered: dict[int, NodeView] = {}
            for node in tree.nodes():
                known = None if node.id in touched else self._nodes.get(node.id)
                ordered[node.id] = known or self._view_node(node, ordered)
            self._nodes = ordered
        for node_id, view in old.items():
            self._rebook(self._node_holds, node_id, _state_of(view), _state_of(self._nodes.get(node_id)))
        self._node_views = tuple(self._nodes.values())
        self._lru = tuple([node.id for node in tree.lru_states()])
        return frozenset(touched)

    def _stays(self, node_id: int) -> bool:
        """Whether a node that was touched is still where it was: then so are all others in their order."""
        old, node = self._nodes.get(node_id), self._store.tree.find(node_id)
        if old is None or node is None or node.parent is None:
            return False
        return (old.parent or 0) == node.parent.id

    def _rebook(self, holds: Holds[T], who: T, was: tuple[int, ...], now: tuple[int, ...]) -> None:
        """Book which slots a node or request holds; if others than before, their owners are seen anew."""
        if was == now:
            return
        for slot in was:
            _let_go(holds, slot, who)
        for slot in now:
            _hold(holds, slot, who)
        self._changed_slots.update(was, now)

    def _view_node(self, node: Node, above: Mapping[int, NodeView]) -> NodeView:
        parent = node.parent
        parent_view = None if parent is None else above.get(parent.id)
        key = (EMPTY if parent_view is None else parent_view.key).after(node.edge)
        return NodeView(
            id=node.id,
            parent=None if parent_view is None else parent_view.id,
            key=key,
            kv_tokens=len(node.edge),
            state=node.state,
            state_lock=node.state_lock,
            kv_lock=node.kv_lock,
            recency=node.recency,
            published=self._store.published.get(node.id, 0) if node.state is not None else 0,
            first_page=node.edge[: self._store.tree.page_size],
        )

    def _refresh_requests(self) -> frozenset[str]:
        touched = frozenset(self.touched_requests)
        self.touched_requests.clear()
        for request_id in touched:
            old, request = self._views.get(request_id), self._requests.get(request_id)
            if request is None:
                self._views.pop(request_id, None)
            else:
                self._views[request_id] = _view_request(request)
            was, now = old.slots if old else (), request.slots if request else ()
            self._rebook(self._request_holds, request_id, was, now)
        return touched

    def _refresh_slots(self) -> frozenset[int]:
        pool = self._store.pool
        self._changed_slots.update(pool.touched)
        pool.touched.clear()
        changed = frozenset(self._changed_slots)
        self._changed_slots.clear()
        if not changed:
            return changed
        self._free_list = pool.allocator.free_list
        free = set(self._free_list)
        twice = len(free) < len(self._free_list)  # only where a slot was freed twice
        device = None if pool.tensors is None else pool.tensors.cursors()
        for index in sorted(changed):  # the first time that is all of them: the views stay in this order
            if 0 <= index < pool.shape.slots:
                cursor = None if device is None else device[index]
                times = self._free_list.count(index) if twice else int(index in free)
                self._slots[index] = self._view_slot(index, cursor, times)
        return changed

    def _view_slot(self, index: int, device_cursor: int | None, num_free: int) -> SlotView:
        pool = self._store.pool
        entry = pool.ledger.slots[index]
        host = None if pool.write_pos is None else pool.write_pos[index]
        return SlotView(
            index,
            self._owners(index, num_free),
            entry.temporal,
            entry.conv,
            entry.conv_checkpoint,
            tuple(entry.ring[:host]) if host else (),
            host,
            device_cursor if pool.tensors is not None else host,
            entry.written,
        )

    def _owners(self, index: int, num_free: int) -> tuple[Owner, ...]:
        """Return who says that it owns a slot; it may be ``num_free`` times on the free list."""
        owners = [_FREE] * num_free if index else [_RESERVED, *[_FREE] * num_free]
        if nodes := self._node_holds.get(index):
            owners += [_owner("tree", str(node)) for node in sorted(nodes)]
        if requests := self._request_holds.get(index):
            owners += [_owner("request", name) for name in sorted(requests)]
        if steps := self._step_holds.get(index):
            owners += [_owner("step", number) for number in sorted(steps)]
        if index in self._load_holds:
            owners.append(_owner("copy", self._load_holds[index]))
        return tuple(owners)


_owner = lru_cache(maxsize=1024)(Owner)  # the same few over and over


def _hold(holds: Holds[T], slot: int, who: T) -> None:
    """Book that ``who`` has ``slot``, in the hands of others as it may be."""
    others = holds.get(slot)
    if others is None:
        holds[slot] = (who,)
    elif who not in others:
        holds[slot] = (*others, who)


def _let_go(holds: Holds[T], slot: int, who: T) -> None:
    others = tuple([one for one in holds.get(slot, ()) if one != who])
    if others:
        holds[slot] = others
    else:
        holds.pop(slot, None)


def _state_of(node: NodeView | None) -> tuple[int, ...]:
    return () if node is None or node.state is None else (node.state,)


def _held_by(pairs: list[tuple[int, T]]) -> Holds[T]:
    holds: Holds[T] = {slot: (who,) for slot, who in pairs}
    if len(holds) < len(pairs):  # a slot in two hands
        holds.clear()
        for slot, who in pairs:
            _hold(holds, slot, who)
    return holds


def _held_by_steps(in_flight: Iterable[PlannedStep]) -> Holds[str]:
    """Return which steps have taken which slots for a checkpoint, those aside that a request owns."""
    holds: Holds[str] = {}
    for step in in_flight:
        for row in step.rows:
            for copy in row.copies:
                if copy.dst not in row.request.track_slots:
                    _hold(holds, copy.dst, str(step.number))
    return holds


def _view_request(request: Request) -> RequestView:
    return RequestView(
        id=request.id,
        phase=request.phase,
        prompt_len=request.prompt_len,
        scheduled=request.scheduled,
        executed=request.executed,
        committed=request.committed,
        tokens=request.absorbed,
        cached=request.cached,
        slot=request.slot,
        track_slots=tuple(request.track_slots),
        stamps=tuple(request.stamps.items()),
        locked=None if request.locked is None else request.locked.id,
        kv_tokens=request.kv_tokens,
        pending_cow=request.pending_cow,
        copies=request.copies,
        drafts=request.drafts,
    )


def _view_step(step: PlannedStep) -> StepView:
    return StepView(
        number=step.number,
        rows=tuple([(row.request.id, row.start, row.end) for row in step.rows]),
        copies=tuple([copy.dst for row in step.rows for copy in row.copies]),
        executed_at=step.executed_at,
    )
