"""Puts a ledger-only engine back into a state that it was in before.

One engine is used for the whole search. What can change in it is read into plain tuples, and written back
where it differs; what two states have in common they share. Nothing here knows a rule of the lifecycle:
objects of this package are found by walking from the engine, so that a part added to it is found, too.
"""

from __future__ import annotations

from typing import NamedTuple

from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.explore.parts import Cells, Values
from replaylife.lifecycle.explore.pieces import NODE_ID, Pieces
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.snapshot import Changed, Snapshot
from replaylife.radix import Node

_NOTHING = Changed()


class Saved(NamedTuple):
    """One state of an engine, as plain data. Pieces that did not change are the same objects as before.

    ``cells`` are the simple attributes of all parts, ``slots`` the ledger's entries, ``nodes`` the tree's,
    ``lru`` and ``hosts`` the ids of those with a state and with a copy in host memory, ``requests`` all that
    run, ``flight`` the steps in flight, ``outside`` copies in flight and the places outside the pool.
    """

    cells: Values
    slots: tuple[Values, ...]
    nodes: tuple[Values, ...]
    lru: tuple[int, ...]
    hosts: tuple[int, ...]
    requests: tuple[Values, ...]
    flight: tuple[Values, ...]
    outside: tuple[Values, ...]
    snapshot: Snapshot


class Memento:
    """Reads and writes the state of one engine.

    Raises ``TypeError`` for an engine with a part that it cannot put back.
    """

    def __init__(self, engine: ReferenceEngine) -> None:
        if engine.store.pool.tensors is not None:
            raise TypeError("the engine has tensors; a search needs a ledger-only one")
        self.engine = engine
        self._cells = Cells(engine)
        self._nodes: dict[int, Node] = {0: engine.store.tree.root}
        self._requests: dict[str, Request] = {}
        self._pieces = Pieces(self._nodes, self._requests, engine.requests)
        self._known: dict[Values, Values] = {}
        self._now: Saved | None = None
        self._dirty: Changed | None = None

    def names(self) -> tuple[tuple[object, tuple[str, ...]], ...]:
        """The parts and the names of their simple attributes, in the order of ``Saved.cells``."""
        return tuple((part.object, part.names) for part in self._cells.parts)

    # -- reading -------------------------------------------------------------------------------------

    def applied(self, changed: Changed) -> None:
        """Note that an action has been applied since the state was last written or saved."""
        dirty = self._dirty
        self._dirty = changed if dirty is None else _both(dirty, changed)

    def broken(self) -> None:
        """Note that the engine has stopped in the middle of an action: nothing in it is known."""
        self._now, self._dirty = None, Changed()

    def save(self) -> Saved:
        """Return the present state; what the last action left alone is shared with the state before."""
        self._cells.require_nothing_new()
        before, changed, engine = self._now, self._dirty, self.engine
        slots = engine.store.pool.ledger.slots
        if before is None or changed is None:
            entries = list(map(self._pieces.slot.read, slots))
        else:
            entries = list(before.slots)
            for index in changed.slots:
                if 0 <= index < len(entries):
                    entries[index] = self._once(self._pieces.slot.read(slots[index]))
        same_tree = before is not None and changed is not None and not changed.nodes
        self._now = saved = Saved(
            cells=self._read_cells(before),
            slots=tuple(entries),
            nodes=before.nodes if same_tree and before is not None else self._read_tree(before),
            lru=before.lru if same_tree and before is not None else tuple(engine.store.tree._lru),
            hosts=before.hosts if same_tree and before is not None else tuple(engine.store.tree._hosts),
            requests=self._read_requests(before, changed),
            flight=tuple(map(self._pieces.step.read, engine.stepper.in_flight)),
            outside=self._read_outside(),
            snapshot=engine._snapshot,
        )
        self._dirty = None
        return saved

    def _once(self, piece: Values) -> Values:
        """Return the same object for equal pieces: many states have most of theirs in common."""
        return self._known.setdefault(piece, piece)

    def _read_cells(self, before: Saved | None) -> Values:
        now = self._cells.read()
        if before is None:
            return now
        return tuple([was if was == value else value for was, value in zip(before.cells, now, strict=True)])

    def _read_tree(self, before: Saved | None) -> tuple[Values, ...]:
        known = {} if before is None else {piece[NODE_ID]: piece for piece in before.nodes}
        pieces = []
        for node in self.engine.store.tree._nodes.values():
            piece = self._pieces.node.read(node)
            was = known.get(node.id)
            pieces.append(was if was == piece else self._once(piece))
        return tuple(pieces)

    def _read_requests(self, before: Saved | None, changed: Changed | None) -> tuple[Values, ...]:
        known = {} if before is None or changed is None else {piece[0]: piece for piece in before.requests}
        touched = () if changed is None else changed.requests
        read = self._pieces.request.read
        return tuple(
            [
                known[name] if name in known and name not in touched else self._once(read(request))
                for name, request in self.engine.requests.items()
            ]
        )

    def _read_outside(self) -> tuple[Values, ...]:
        """Copies in flight, then the places of host memory and of the other pool."""
        tier = self.engine.tier
        if tier.host is None and tier.peer is None:
            return ()
        pools = [places for places in (tier.host, tier.peer) if places is not None]
        copies = tuple(map(self._pieces.copy.read, tier.copies.values()))
        return (copies, *(tuple(map(self._pieces.place.read, pool.places)) for pool in pools))

    # -- writing -------------------------------------------------------------------------------------

    def load(self, saved: Saved) -> None:
        """Put the engine into a state that was saved of it."""
        before, changed = self._now, self._dirty
        if before is saved and changed is None:
            return
        engine, tree = self.engine, self.engine.store.tree
        self._nodes.update(tree._nodes)  # objects that the engine has made since are as good as older ones
        self._requests.update(engine.requests)
        self._write_slots(saved, before, changed)
        if before is None or before.nodes is not saved.nodes or (changed is not None and changed.nodes):
            self._write_tree(saved)
        tree.touched.clear()
        self._write_requests(saved, before, changed)
        if before is None or changed is not None or before.cells is not saved.cells:
            self._cells.write(saved.cells)
        if saved.flight or engine.stepper.in_flight:
            self._write_flight(saved)
        self._write_outside(saved)
        engine._snapshot, engine._changed = saved.snapshot, _NOTHING
        engine._snapshotter.restore(saved.snapshot, afresh=before is None)
        engine.store.pool.touched.clear()
        self._now, self._dirty = saved, None

    def _write_slots(self, saved: Saved, before: Saved | None, changed: Changed | None) -> None:
        entries = self.engine.store.pool.ledger.slots
        known: tuple[Values | None, ...] = (None,) * len(entries) if before is None else before.slots
        dirty: frozenset[int] | tuple[()] = () if changed is None else changed.slots
        for index, values in enumerate(saved.slots):
            if values is not known[index] or index in dirty:
                self._pieces.slot.write(entries[index], values)

    def _write_tree(self, saved: Saved) -> None:
        tree, objects = self.engine.store.tree, self._nodes
        tree._nodes.clear()
        for piece in saved.nodes:
            node = objects.get(piece[NODE_ID])
            if node is None:
                node = objects[piece[NODE_ID]] = object.__new__(Node)
            tree._nodes[piece[NODE_ID]] = node
        for piece in saved.nodes:
            self._pieces.node.write(objects[piece[NODE_ID]], piece)
        tree.root = objects[0]
        tree._lru.clear()
        tree._lru.update([(node_id, objects[node_id]) for node_id in saved.lru])
        tree._hosts.clear()
        tree._hosts.update([(node_id, objects[node_id]) for node_id in saved.hosts])

    def _write_requests(self, saved: Saved, before: Saved | None, changed: Changed | None) -> None:
        requests, objects = self.engine.requests, self._requests
        known = {} if before is None else {piece[0]: piece for piece in before.requests}
        dirty = () if changed is None else changed.requests
        requests.clear()
        for values in saved.requests:
            name = values[0]
            request = objects.get(name)
            if request is None:
                request = objects[name] = self._pieces.request.make(values)
            elif known.get(name) is not values or name in dirty:
                self._pieces.request.write(request, values)
            requests[name] = request

    def _write_flight(self, saved: Saved) -> None:
        flight = self.engine.stepper.in_flight
        flight.clear()
        flight.extend(map(self._pieces.step.make, saved.flight))

    def _write_outside(self, saved: Saved) -> None:
        tier = self.engine.tier
        if not saved.outside:
            return
        copies, *pools = saved.outside
        tier.copies.clear()
        for values in copies:
            copy = self._pieces.copy.make(values)
            tier.copies[copy.of] = copy
        for places, kept in zip([p for p in (tier.host, tier.peer) if p is not None], pools, strict=True):
            for place, values in zip(places.places, kept, strict=True):
                self._pieces.place.write(place, values)
            places.touched.clear()


def _both(one: Changed, other: Changed) -> Changed:
    return Changed(one.slots | other.slots, one.nodes | other.nodes, one.requests | other.requests)
