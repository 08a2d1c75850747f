"""When two states are one: fingerprints of a world, with and without regard to who is who.

Both leave out what no later action and no invariant can tell apart: absolute step numbers and clocks (only
their order counts), what is shown and never decided on (the step that published a node), the order of rows in
the last batch (rows reach kernels only).

:class:`Exact` keeps everything else by name and number. :class:`Reduced` also forgets the numbers of slots
and nodes, which of several alike conversations is which, and what lies in slots that are written before they
are read (free ones, the destination of a copy that has not run, track slots without a stamp); of the free
ones it keeps the cursor. Where a conversation refers to something of another, and so cannot be told apart
from it by itself, it keeps the names: then fewer states are one, never more.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from marshal import dumps
from operator import attrgetter
from typing import Any, TypeAlias

from replaylife.lifecycle.explore.beyond import Extras, outside, window_of
from replaylife.lifecycle.explore.conversations import OVER, RUNNING, Progress
from replaylife.lifecycle.explore.world import World
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.snapshot import NodeView, SlotView
from replaylife.pool import Fold

Fingerprint: TypeAlias = Callable[[], bytes]

"""Attributes of the engine's parts that are constant, derived, or taken account of below."""

_TAKEN = {
    "drafts",
    "id",
    "tokens",
    "absorbed",
    "slot",
    "locked",
    "pending_cow",
    "track_slots",
    "stamps",
    "marks",
}
_REST = attrgetter(*(name for name in Request.__slots__ if name not in _TAKEN))
_VERSION = 2  # of marshal's format: the last whose bytes do not depend on reference counts


def fingerprint_of(world: World) -> Fingerprint:
    """Return what names the present state of a world in 16 bytes."""
    return Reduced(world) if world.symmetry else Exact(world)


def digest(data: bytes) -> bytes:
    """Return 16 bytes that no two of a search's states will share by chance."""
    return blake2b(data, digest_size=16).digest()


def _by_use(nodes: tuple[NodeView, ...]) -> list[NodeView]:
    """Nodes in the order of their last use: the order that eviction follows, whatever their ids."""
    return sorted(nodes, key=_RECENCY)


_RECENCY = attrgetter("recency", "id")


class Exact:
    """Names and numbers as they are: slots, requests, the contents of free slots and of rings."""

    def __init__(self, world: World) -> None:
        self.world, self._extras = world, Extras(world)

    def __call__(self) -> bytes:
        """Return the fingerprint of the present state."""
        world, snap = self.world, self.world.snapshot
        steps = {
            step.executed_at: k for k, step in enumerate(snap.in_flight, 1) if step.executed_at is not None
        }
        keys = {node.id: tuple(node.key) for node in snap.nodes}
        store = world.engine.store
        return digest(
            dumps(
                (
                    tuple(self._slot(index, steps) for index in range(len(snap.slots))),
                    tuple(self._node(node, keys) for node in _by_use(snap.nodes)),
                    tuple(self._request(request, keys) for request in world.engine.requests.values()),
                    tuple((s.rows, s.copies, s.executed_at is None) for s in snap.in_flight),
                    tuple(
                        (p.published, tuple(map(tuple, p.copies)), window_of(p.window))
                        for s in world.engine.stepper.in_flight
                        for p in s.rows
                    ),
                    snap.free_slots,
                    snap.kv_free,
                    tuple(sorted(store.retracted.items())),
                    tuple(sorted(store.rejected.items())),
                    tuple(map(tuple, world.cast)),
                    world.counts,
                    outside(world, keys),
                    tuple(keys[node.id] for node in store.tree.host_nodes()),
                    self._extras.read(),
                ),
                _VERSION,
            )
        )

    def _slot(self, index: int, steps: dict[int, int]) -> tuple[Any, ...]:
        entry = self.world.engine.store.pool.ledger.slots[index]
        ring = tuple(None if record is None else tuple(record) for record in entry.ring)
        folds = (tuple(entry.temporal), tuple(entry.conv), tuple(entry.conv_checkpoint or ()))
        return folds, ring, self.world.engine.store.pool.pending(index), steps.get(entry.written, 0)

    def _node(self, node: NodeView, keys: dict[int, tuple[int, ...]]) -> tuple[Any, ...]:
        parent = () if node.parent is None else keys[node.parent]
        return tuple(node.key), parent, node.state, node.state_lock, node.kv_lock

    def _request(self, request: Request, keys: dict[int, tuple[int, ...]]) -> tuple[Any, ...]:
        cow = None if request.pending_cow is None else tuple(request.pending_cow)
        stamps = tuple((slot, tuple(fold)) for slot, fold in request.stamps.items())
        locked = None if request.locked is None else keys.get(request.locked.id, request.locked.id)
        lists = (tuple(request.tokens), tuple(request.track_slots), tuple(request.marks))
        return request.id, tuple(request.absorbed), request.slot, locked, cow, stamps, lists, _REST(request)


class Reduced:
    """Equal for states that differ only in who is who: a skeleton without names, and what is left of each.

    In the skeleton nodes stand in the order of use and owners are left blank; each conversation's own part
    says at which places of the skeleton it is meant. Sorted, these parts are the same whoever is called what:
    two conversations with equal parts own no place, so that exchanging them changes nothing.
    """

    def __init__(self, world: World) -> None:
        self.world, self._extras = world, Extras(world)
        self._labels = world.lineage._labels
        self._snap = world.snapshot
        self._odd: list[Any] = []
        self._steps: dict[int | None, int] = {}

    def __call__(self) -> bytes:
        """Return the fingerprint of the present state."""
        world = self.world
        snap = self._snap = world.snapshot
        self._odd = []
        flight = snap.in_flight
        self._steps = (
            {s.executed_at: k for k, s in enumerate(flight, 1) if s.executed_at is not None} if flight else {}
        )
        ranks: dict[int | None, int] = {}
        places: list[list[int]] = [[] for _ in world.cast]
        skeleton: list[Any] = [snap.kv_free, world.counts, self._extras.read()]
        nodes = _by_use(snap.nodes)
        for rank, node in enumerate(nodes, 1):
            ranks[node.id] = rank
            kind, owner = self._label(node.key)
            if owner >= 0:
                places[owner].append(rank)
            skeleton += (kind, node.state_lock, node.kv_lock)
            skeleton.append(0 if node.state is None else self._cached(snap.slots[node.state], node.key))
        parents = [ranks.get(node.parent, 0) for node in nodes]
        cursors = [snap.slots[slot].write_pos for slot in snap.free_slots if slot < len(snap.slots)]
        skeleton += (parents, cursors, [(s.executed_at is None, len(s.rows)) for s in flight])
        if snap.host_places or snap.peer_places:
            self._odd.append(outside(world, {node.id: tuple(node.key) for node in nodes}))
        own = [self._own(i, progress, tuple(places[i]), ranks) for i, progress in enumerate(world.cast)]
        if self._odd:
            return digest(b"".join((dumps(skeleton, _VERSION), dumps(self._odd, _VERSION), *own)))
        return digest(b"".join((dumps(skeleton, _VERSION), *sorted(own))))

    # -- folds ---------------------------------------------------------------------------------------

    def _label(self, fold: Fold) -> tuple[int, int]:
        label = self._labels.get(fold)
        if label is None:
            self._learn()
            label = self._labels.get(fold) or self.world.lineage.stray(fold)
        return label

    def _learn(self) -> None:
        world = self.world
        for name, request in world.engine.requests.items():
            who = world.who(name)
            world.lineage.learn(who, tuple(request.tokens), world.cast[who.index].bounds)

    def _of(self, fold: Fold | None, index: int) -> int:
        """The kind of a sequence in the hands of a conversation; odd where it is another's."""
        if fold is None:
            return 0
        kind, owner = self._labels.get(fold) or self._label(fold)
        if owner not in (index, -1):
            self._odd.append((index, kind, owner))
        return kind

    def _cached(self, slot: SlotView, key: Fold) -> Any:
        """What a cached state holds: 1 where it is what the key says, and no step in flight wrote it."""
        written = self._steps.get(slot.written, 0)
        if slot.temporal == key == slot.conv and slot.conv_checkpoint in (None, key) and not slot.write_pos:
            return 1 + written
        parts = [slot.temporal, slot.conv, *([] if slot.conv_checkpoint is None else [slot.conv_checkpoint])]
        self._odd.append(tuple(self._label(part) for part in parts))
        return -1, slot.write_pos, written

    # -- conversations -------------------------------------------------------------------------------

    def _own(
        self, index: int, progress: Progress, places: tuple[int, ...], ranks: dict[int | None, int]
    ) -> bytes:
        world = self.world
        who = world.people[index]
        status, turn, tokens, _, away = progress
        if status == OVER and not places:
            return dumps((who.template, OVER), _VERSION)
        name = who.request(turn)
        request = world.engine.requests.get(name)
        store = world.engine.store
        rejected = store.rejected.get(name)
        left = store.retracted.get(name, 0), 0 if rejected is None else self._slot_ref(rejected, index)
        said = 0 if status in (OVER, RUNNING) else self._whole(index, tokens)
        running = () if request is None else self._request(index, request, ranks)
        return dumps((who.template, status, turn, away, said, left, running, places), _VERSION)

    def _whole(self, index: int, tokens: tuple[int, ...]) -> int:
        who, bounds = self.world.people[index], self.world.cast[index].bounds
        return self.world.lineage.label_of(who, tokens, bounds).kind

    def _slot_ref(self, slot: int, index: int) -> Any:
        """Name a slot by what it is: a node's by the node, a conversation's own, else by its number."""
        view = self._snap.slots[slot]
        kinds = [(owner.kind, owner.id) for owner in view.owners]
        self._odd.append((index, slot, kinds))
        return -1

    def _request(self, index: int, request: Request, ranks: dict[int | None, int]) -> tuple[Any, ...]:
        snap, cow = self._snap, request.pending_cow
        executed = (
            {
                c.dst
                for s in self.world.engine.stepper.in_flight
                if s.executed_at is not None
                for row in s.rows
                for c in row.copies
            }
            if self._steps
            else ()
        )
        source: Any = 0
        if cow is not None:
            source = next((ranks[n.id] for n in snap.nodes if n.state == cow.src), None)
            source = self._slot_ref(cow.src, index) if source is None else source
        held = () if request.slot is None else self._live(index, request, snap.slots[request.slot])
        tracks = []
        for slot in request.track_slots:
            stamp = request.stamps.get(slot)
            filled = stamp is not None or slot in executed
            contents = self._contents(index, snap.slots[slot]) if filled else 0
            tracks.append((self._of(stamp, index), request.marks.count(slot), contents))
        locked = 0 if request.locked is None else ranks.get(request.locked.id, -1)
        steps = self._rows(index, request, executed) if self._steps or snap.in_flight else ()
        return (
            _REST(request), len(request.tokens), len(request.drafts), self._of(request.absorbed, index),
            locked, source,
            0 if cow is None else request.slots.index(cow.dst) + 1 if cow.dst in request.slots else -1,
            held, tracks, steps,
        )  # fmt: skip

    def _live(self, index: int, request: Request, slot: SlotView) -> tuple[Any, ...]:
        """A running request's own slot: nothing but the cursor while a copy is still to fill it."""
        if request.pending_cow is not None:
            return (slot.write_pos,)
        ring: list[int] = []
        for record in slot.ring:
            if record is None or record.request != request.id:
                self._odd.append((index, tuple(record or ())))
            else:
                ring.append(record.position)
        return (*self._contents(index, slot), slot.write_pos, tuple(ring))

    def _contents(self, index: int, slot: SlotView) -> tuple[int, ...]:
        return (
            self._of(slot.temporal, index),
            self._of(slot.conv, index),
            self._of(slot.conv_checkpoint, index),
            self._steps.get(slot.written, 0),
        )

    def _rows(self, index: int, request: Request, executed: Any) -> tuple[Any, ...]:
        """The request's rows in the steps in flight, with the checkpoints that they leave."""
        rows = []
        for number, step in enumerate(self.world.engine.stepper.in_flight):
            for row in step.rows:
                if row.request is not request:
                    continue
                copies = []
                for copy in row.copies:
                    own = request.track_slots.index(copy.dst) + 1 if copy.dst in request.track_slots else 0
                    view = self._snap.slots[copy.dst]
                    written = self._contents(index, view) if copy.dst in executed and not own else ()
                    copies.append((copy.length, own, written))
                window = window_of(row.window)
                rows.append((number, row.start, row.end, row.decode, row.published, tuple(copies), window))
        return tuple(rows)
