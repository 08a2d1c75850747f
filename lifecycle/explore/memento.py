"""Puts a ledger-only engine back into a state that it was in before.

One engine is used for the whole search. What can change in it is read into plain tuples, and written back where
it differs; what two states have in common they share. Nothing here knows a rule of the lifecycle: objects of this
package are found by walking from the engine, so that a part added to it is found, too.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import is_dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.planned import PlannedRow, PlannedStep
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.snapshot import Changed, Snapshot
from replaylife.lifecycle.snapshotter import Snapshotter
from replaylife.lifecycle.store import StateStore
from replaylife.pool import MambaPool
from replaylife.pool.ledger import Ledger, SlotLedger
from replaylife.radix import Node, RadixTree

_PLAIN = (int, str, float, bool, tuple, frozenset, type(None))
_FILLED = (list, set, deque, OrderedDict, dict)
_ELSEWHERE: dict[type, set[str]] = {  # what is read and written by its own rules below
    ReferenceEngine: {"requests", "_snapshot", "_changed"},
    StateStore: {"events"},
    MambaPool: {"touched"},
    RadixTree: {"root", "_nodes", "_lru", "touched"},
    Ledger: {"slots"},
    Snapshotter: {
        *("_slots", "_nodes", "_node_views", "_views", "_node_holds", "_request_holds", "_step_holds"),
        *("_free_list", "_lru", "touched_requests", "_changed_slots"),
    },
}
CONSTANT = frozenset(
    {
        *("capacity", "page_size", "num_slots", "tensors", "logging", "_grid", "_vocab", "_ring_length"),
        *("_track_point", "_tracks", "grid"),
    }
)
"""Attributes that no action changes; a test watches them."""
_SLOT = attrgetter(*SlotLedger.__slots__)
_NODE_FIELDS = tuple(name for name in Node.__slots__ if name not in ("parent", "children"))
_NODE = attrgetter(*_NODE_FIELDS)
_REQUEST = attrgetter(*Request.__slots__)
_STEP = attrgetter(*PlannedStep.__slots__)
_ROW = attrgetter(*PlannedRow.__slots__)

Values = tuple[Any, ...]


class Saved(NamedTuple):
    """One state of an engine, as plain data. Pieces that did not change are the same objects as before.

    ``cells`` are the simple attributes of all parts, ``slots`` the ledger's entries, ``nodes`` the tree's,
    ``lru`` the ids of those with a state, ``requests`` the running requests', ``flight`` the steps in flight.
    """

    cells: tuple[Values, ...]
    slots: tuple[Values, ...]
    nodes: tuple[Values, ...]
    lru: tuple[int, ...]
    requests: tuple[Values, ...]
    flight: tuple[Values, ...]
    snapshot: Snapshot


class Part:
    """One object of the engine and its simple attributes: numbers, texts, and containers of those."""

    __slots__ = ("_get", "filled", "names", "object", "simple", "size")

    def __init__(self, thing: object, names: tuple[str, ...]) -> None:
        self.object, self.names = thing, names
        self.filled = tuple(
            (i, name) for i, name in enumerate(names) if isinstance(getattr(thing, name), _FILLED)
        )
        containers = {index for index, _ in self.filled}
        self.simple = tuple((i, name) for i, name in enumerate(names) if i not in containers)
        self._get = attrgetter(*names) if len(names) > 1 else lambda it: (getattr(it, names[0]),)
        self.size = len(getattr(thing, "__dict__", ()))

    def read(self) -> Values:
        """Return the values, containers as tuples."""
        values: Values = self._get(self.object)
        if not self.filled:
            return values
        changeable = list(values)
        for index, _ in self.filled:
            inside = changeable[index]
            changeable[index] = tuple(inside.items() if isinstance(inside, dict) else inside)
        return tuple(changeable)

    def write(self, values: Values) -> None:
        """Put values back, into the same containers: others hold them, too."""
        thing = self.object
        for index, name in self.simple:
            setattr(thing, name, values[index])
        for index, name in self.filled:
            container, value = getattr(thing, name), values[index]
            container.clear()
            container.extend(value) if isinstance(container, list | deque) else container.update(value)


class Memento:
    """Reads and writes the state of one engine.

    Raises ``TypeError`` for an engine with a part that it cannot put back.
    """

    def __init__(self, engine: ReferenceEngine) -> None:
        if engine.store.pool.tensors is not None:
            raise TypeError("the engine has tensors; a search needs a ledger-only one")
        self.engine = engine
        self._parts: list[Part] = []
        self._tables = (engine.requests, engine.stepper.in_flight, engine.store.tree._nodes)
        self._find_parts()
        self._nodes: dict[int, Node] = {0: engine.store.tree.root}
        self._requests: dict[str, Request] = {}
        self._known: dict[Values, Values] = {}
        self._now: Saved | None = None
        self._dirty: Changed | None = None

    # -- finding what there is -----------------------------------------------------------------------

    def _find_parts(self) -> None:
        seen: set[int] = set()
        queue: list[object] = [self.engine]
        while queue:
            thing = queue.pop()
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            names = set(_declared(thing))
            special = {n for kind, those in _ELSEWHERE.items() if isinstance(thing, kind) for n in those}
            for name, value in _attributes(thing):
                if name in special or any(value is table for table in self._tables):
                    continue
                if isinstance(value, _PLAIN + _FILLED):
                    names.add(name)
                elif _is_part(value):
                    queue.append(value)
            if names - CONSTANT:
                self._parts.append(Part(thing, tuple(sorted(names - CONSTANT))))

    def _require_nothing_new(self) -> None:
        """Raise ``TypeError`` where an attribute has appeared that no part knows of."""
        for part in self._parts:
            if part.size != len(getattr(part.object, "__dict__", ())):
                part.size = len(part.object.__dict__)
                now = {
                    name for name, value in vars(part.object).items() if isinstance(value, _PLAIN + _FILLED)
                }
                special = {n for kind, o in _ELSEWHERE.items() if isinstance(part.object, kind) for n in o}
                new = sorted(now - special - CONSTANT - set(part.names))
                if new:
                    raise TypeError(
                        f"{type(part.object).__name__}.{new[0]} appeared during the search; set it when the "
                        "engine is built, or annotate it in the class with a default"
                    )

    def names(self) -> tuple[tuple[object, tuple[str, ...]], ...]:
        """The parts and the names of their simple attributes, in the order of ``Saved.cells``."""
        return tuple((part.object, part.names) for part in self._parts)

    # -- reading -------------------------------------------------------------------------------------

    def applied(self, changed: Changed) -> None:
        """Note that an action has been applied since the state was last written or saved."""
        so_far = self._dirty
        self._dirty = (
            changed
            if so_far is None
            else Changed(
                so_far.slots | changed.slots, so_far.nodes | changed.nodes, so_far.requests | changed.requests
            )
        )

    def broken(self) -> None:
        """Note that the engine has stopped in the middle of an action: nothing in it is known."""
        self._now, self._dirty = None, Changed()

    def save(self) -> Saved:
        """Return the present state; what the last action left alone is shared with the state before."""
        self._require_nothing_new()
        before, changed, engine = self._now, self._dirty, self.engine
        slots = engine.store.pool.ledger.slots
        if before is None or changed is None:
            entries = list(map(_read_slot, slots))
        else:
            entries = list(before.slots)
            for index in changed.slots:
                if 0 <= index < len(entries):
                    entries[index] = self._once(_read_slot(slots[index]))
        same_tree = before is not None and changed is not None and not changed.nodes
        self._now = saved = Saved(
            cells=self._once(tuple(self._once(part.read()) for part in self._parts)),
            slots=tuple(entries),
            nodes=before.nodes if same_tree and before is not None else self._read_tree(before),
            lru=before.lru if same_tree and before is not None else tuple(engine.store.tree._lru),
            requests=self._read_requests(before, changed),
            flight=tuple(map(_read_step, engine.stepper.in_flight)),
            snapshot=engine._snapshot,
        )
        self._dirty = None
        return saved

    def _once(self, piece: Values) -> Values:
        """Return the same object for equal pieces: many states have most of theirs in common."""
        return self._known.setdefault(piece, piece)

    def _read_tree(self, before: Saved | None) -> tuple[Values, ...]:
        known = {} if before is None else {piece[0][_ID]: piece for piece in before.nodes}
        pieces = []
        for node in self.engine.store.tree._nodes.values():
            parent = None if node.parent is None else node.parent.id
            piece = (_NODE(node), parent, tuple((page, child.id) for page, child in node.children.items()))
            was = known.get(node.id)
            pieces.append(was if was == piece else self._once(piece))
        return tuple(pieces)

    def _read_requests(self, before: Saved | None, changed: Changed | None) -> tuple[Values, ...]:
        known = {} if before is None or changed is None else {piece[0]: piece for piece in before.requests}
        touched = () if changed is None else changed.requests
        return tuple(
            known[name] if name in known and name not in touched else self._once(_read_request(request))
            for name, request in self.engine.requests.items()
        )

    # -- writing -------------------------------------------------------------------------------------

    def load(self, saved: Saved) -> None:
        """Put the engine into a state that was saved of it."""
        before, changed = self._now, self._dirty
        if before is saved and changed is None:
            return
        tree = self.engine.store.tree
        self._nodes.update(tree._nodes)  # objects that the engine has made since are as good as older ones
        self._requests.update(self.engine.requests)
        self._write_slots(saved, before, changed)
        if before is None or before.nodes is not saved.nodes or (changed is not None and changed.nodes):
            self._write_tree(saved)
        tree.touched.clear()
        self._write_requests(saved, before, changed)
        for part, values in zip(self._parts, saved.cells, strict=True):
            part.write(values)
        self._write_flight(saved)
        self._write_views(saved)
        self._now, self._dirty = saved, None

    def _write_slots(self, saved: Saved, before: Saved | None, changed: Changed | None) -> None:
        entries = self.engine.store.pool.ledger.slots
        known: tuple[Values | None, ...] = (None,) * len(entries) if before is None else before.slots
        dirty: frozenset[int] | tuple[()] = () if changed is None else changed.slots
        for index, values in enumerate(saved.slots):
            if values is not known[index] or index in dirty:
                entry = entries[index]
                for name, value in zip(SlotLedger.__slots__, values, strict=True):
                    setattr(entry, name, value)
                entry.ring = list(values[_RING])

    def _write_tree(self, saved: Saved) -> None:
        tree, objects = self.engine.store.tree, self._nodes
        tree._nodes.clear()
        for fields, _, _ in saved.nodes:
            node = objects.get(fields[_ID])
            if node is None:
                node = objects[fields[_ID]] = object.__new__(Node)
            for name, value in zip(_NODE_FIELDS, fields, strict=True):
                setattr(node, name, value)
            tree._nodes[node.id] = node
        for fields, parent, children in saved.nodes:
            node = objects[fields[_ID]]
            node.parent = None if parent is None else objects[parent]
            node.children = {page: objects[child] for page, child in children}
        tree.root = objects[0]
        tree._lru.clear()
        tree._lru.update((node_id, objects[node_id]) for node_id in saved.lru)

    def _write_requests(self, saved: Saved, before: Saved | None, changed: Changed | None) -> None:
        requests, objects = self.engine.requests, self._requests
        known = {} if before is None else {piece[0]: piece for piece in before.requests}
        dirty = () if changed is None else changed.requests
        requests.clear()
        for values in saved.requests:
            name = values[0]
            request = objects.get(name)
            if request is None:
                request = objects[name] = object.__new__(Request)
            if known.get(name) is not values or name in dirty:
                self._write_request(request, values)
            requests[name] = request

    def _write_request(self, request: Request, values: Values) -> None:
        for name, value in zip(Request.__slots__, values, strict=True):
            kind = type(value)
            if kind is _List:
                value = list(value)
            elif kind is _Dict:
                value = dict(value)
            elif kind is _NodeId:
                value = self._nodes[value]
            setattr(request, name, value)

    def _write_flight(self, saved: Saved) -> None:
        flight = self.engine.stepper.in_flight
        flight.clear()
        for values in saved.flight:
            step = object.__new__(PlannedStep)
            for name, value in zip(PlannedStep.__slots__, values, strict=True):
                setattr(step, name, [self._planned_row(row) for row in value] if name == "rows" else value)
            flight.append(step)

    def _planned_row(self, values: Values) -> PlannedRow:
        row = object.__new__(PlannedRow)
        for name, value in zip(PlannedRow.__slots__, values, strict=True):
            if name == "request":
                value = self._requests[value]
            setattr(row, name, list(value) if type(value) is _List else value)
        return row

    def _write_views(self, saved: Saved) -> None:
        engine, views, snapshot = self.engine, self.engine._snapshotter, saved.snapshot
        engine._snapshot, engine._changed = snapshot, Changed()
        views._slots = {view.index: view for view in snapshot.slots}
        if views._node_views is not snapshot.nodes:
            views._node_views = snapshot.nodes
            views._nodes = {view.id: view for view in snapshot.nodes}
        views._node_holds.clear()
        for node in snapshot.nodes:
            if node.state is not None:
                views._node_holds[node.state].add(node.id)
        views._views = {view.id: view for view in snapshot.requests}
        views._request_holds.clear()
        for request in snapshot.requests:
            for slot in request.slots:
                views._request_holds[slot].add(request.id)
        views._step_holds.clear()
        for step in engine.stepper.in_flight:
            for row in step.rows:
                for copy in row.copies:
                    if copy.dst not in row.request.track_slots:
                        views._step_holds[copy.dst].add(str(step.number))
        views._free_list, views._lru = snapshot.free_slots, snapshot.lru
        views.touched_requests.clear()
        views._changed_slots.clear()
        engine.store.pool.touched.clear()


class _List(tuple[Any, ...]):
    """What was a list."""

    __slots__ = ()


class _Dict(tuple[Any, ...]):
    """What was a dictionary, as pairs."""

    __slots__ = ()


class _NodeId(int):
    """What was a node."""

    __slots__ = ()


_ID = _NODE_FIELDS.index("id")
_KINDS = {list: _List, Node: lambda node: _NodeId(node.id), dict: lambda items: _Dict(items.items())}


def _read_slot(entry: SlotLedger) -> Values:
    values = list(_SLOT(entry))
    values[_RING] = tuple(values[_RING])
    return tuple(values)


_RING = SlotLedger.__slots__.index("ring")


def _read_request(request: Request) -> Values:
    return tuple(
        _KINDS[type(value)](value) if type(value) in _KINDS else value for value in _REQUEST(request)
    )


def _read_step(step: PlannedStep) -> Values:
    return tuple(tuple(map(_read_row, value)) if type(value) is list else value for value in _STEP(step))


def _read_row(row: PlannedRow) -> Values:
    return tuple(
        value.id if type(value) is Request else _List(value) if type(value) is list else value
        for value in _ROW(row)
    )


def _shared(values: Values, before: Values | None) -> Values:
    return before if before is not None and before == values else values


def _attributes(thing: object) -> Iterator[tuple[str, Any]]:
    names = list(getattr(thing, "__dict__", ()))
    for kind in type(thing).__mro__:
        names += [name for name in getattr(kind, "__slots__", ()) if hasattr(thing, name)]
    for name in dict.fromkeys(names):
        yield name, getattr(thing, name)


def _is_part(value: object) -> bool:
    """Whether an attribute is an object of this package that can change."""
    kind = type(value)
    frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    ours = any(each.__module__.startswith("replaylife.") for each in kind.__mro__)
    return (
        ours
        and not frozen
        and not isinstance(value, type | Node | Request | Snapshot)
        and not callable(value)
    )


def _declared(thing: object) -> Iterator[str]:
    """Attributes that a class of this package declares with a default and its objects may set later."""
    for kind in type(thing).__mro__:
        if kind.__module__.startswith("replaylife."):
            for name, annotation in kind.__dict__.get("__annotations__", {}).items():
                if not str(annotation).startswith("ClassVar") and isinstance(kind.__dict__.get(name), _PLAIN):
                    yield name
