"""Slots, nodes, requests and steps as tuples, and what in them was a list, a dictionary or a node."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from operator import attrgetter, is_not
from typing import Any, TypeVar

from replaylife.lifecycle.explore.parts import Values
from replaylife.lifecycle.host_tier import CopyInFlight
from replaylife.lifecycle.planned import PlannedRow, PlannedStep, Window
from replaylife.lifecycle.request import Request
from replaylife.pool import Fold, StoredCheckpoint
from replaylife.pool.ledger import SlotLedger
from replaylife.radix import Node

NODE_FIELDS = tuple(name for name in Node.__slots__ if name not in ("parent", "children"))
NODE_ID = NODE_FIELDS.index("id")
_SLOT = attrgetter(*SlotLedger.__slots__)
_NODE = attrgetter(*NODE_FIELDS)
_REQUEST = attrgetter(*Request.__slots__)
_STEP = attrgetter(*PlannedStep.__slots__)
_ROW = attrgetter(*PlannedRow.__slots__)
_WINDOW = attrgetter(*Window.__slots__)
_PLACE = attrgetter(*StoredCheckpoint.__slots__)
_COPY = attrgetter(*CopyInFlight.__slots__)
_FIELDS: dict[type, tuple[tuple[str, ...], attrgetter[Any]]] = {
    SlotLedger: (SlotLedger.__slots__, _SLOT),
    Request: (Request.__slots__, _REQUEST),
    PlannedRow: (PlannedRow.__slots__, _ROW),
    Window: (Window.__slots__, _WINDOW),
    StoredCheckpoint: (StoredCheckpoint.__slots__, _PLACE),
    CopyInFlight: (CopyInFlight.__slots__, _COPY),
}

T = TypeVar("T")


class WasList(tuple[Any, ...]):
    """What was a list."""

    __slots__ = ()


class WasDict(tuple[Any, ...]):
    """What was a dictionary, as pairs."""

    __slots__ = ()


class WasNode(int):
    """What was a node: its id."""

    __slots__ = ()


class WasRequest(str):
    """What was a request: its name."""

    __slots__ = ()


class WasWindow(tuple[Any, ...]):
    """What was a verify window: its fields."""

    __slots__ = ()


def read_slot(entry: SlotLedger) -> Values:
    """Return a ledger entry's fields."""
    return tuple(map(_frozen, _SLOT(entry)))


def read_place(place: StoredCheckpoint) -> Values:
    """Return the fields of a checkpoint outside the pool."""
    return _PLACE(place)


def read_copy(copy: CopyInFlight) -> Values:
    """Return the fields of a copy in flight."""
    return tuple(map(_frozen, _COPY(copy)))


def read_node(node: Node) -> Values:
    """Return a node's fields, its parent's id, and (page, id) of its children."""
    parent = None if node.parent is None else node.parent.id
    return _NODE(node), parent, tuple((page, child.id) for page, child in node.children.items())


def read_request(request: Request) -> Values:
    """Return a request's fields."""
    return tuple(map(_frozen, _REQUEST(request)))


def read_step(step: PlannedStep) -> Values:
    """Return a step's fields, its rows as tuples of theirs."""
    return tuple(tuple(map(_read_row, value)) if type(value) is list else value for value in _STEP(step))


def _read_row(row: PlannedRow) -> Values:
    return tuple(map(_frozen, _ROW(row)))


def _frozen(value: Any) -> Any:
    kind = type(value)
    if kind is list:
        return WasList(value)
    if kind is dict:
        return WasDict(value.items())
    if kind is Node:
        return WasNode(value.id)
    if kind is Request:
        return WasRequest(value.id)
    return WasWindow(_WINDOW(value)) if kind is Window else value


class Thaw:
    """Turns what was read back into lists, dictionaries and objects; nodes and requests are looked up."""

    def __init__(self, nodes: Mapping[int, Node], requests: Mapping[str, Request]) -> None:
        self._nodes, self._requests = nodes, requests

    def fill(self, thing: T, values: Values) -> T:
        """Set the fields of a slotted object that are not these values; return it."""
        names, read = _FIELDS[type(thing)]
        for name, value in compress(zip(names, values, strict=True), map(is_not, read(thing), values)):
            setattr(thing, name, value if type(value) in _AS_IT_IS else self._thawed(value))
        return thing

    def make(self, kind: type[T], values: Values) -> T:
        """Return a new object with these fields."""
        thing = object.__new__(kind)
        for name, value in zip(_FIELDS[kind][0], values, strict=True):
            setattr(thing, name, value if type(value) in _AS_IT_IS else self._thawed(value))
        return thing

    def _thawed(self, value: Any) -> Any:
        kind = type(value)
        if kind is WasList:
            return list(value)
        if kind is WasDict:
            return dict(value)
        if kind is WasNode:
            return self._nodes[value]
        if kind is WasRequest:
            return self._requests[value]
        return self.make(Window, value) if kind is WasWindow else value


_AS_IT_IS = frozenset({int, str, bool, type(None), Fold, tuple})
