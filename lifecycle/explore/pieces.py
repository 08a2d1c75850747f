"""Slots, nodes, requests and steps as tuples, and what in them was a list, a dictionary or a node."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from replaylife.lifecycle.explore.parts import Values
from replaylife.lifecycle.planned import PlannedRow, PlannedStep
from replaylife.lifecycle.request import Request
from replaylife.pool.ledger import SlotLedger
from replaylife.radix import Node

NODE_FIELDS = tuple(name for name in Node.__slots__ if name not in ("parent", "children"))
NODE_ID = NODE_FIELDS.index("id")
RING = SlotLedger.__slots__.index("ring")
_SLOT = attrgetter(*SlotLedger.__slots__)
_NODE = attrgetter(*NODE_FIELDS)
_REQUEST = attrgetter(*Request.__slots__)
_STEP = attrgetter(*PlannedStep.__slots__)
_ROW = attrgetter(*PlannedRow.__slots__)


class WasList(tuple[Any, ...]):
    """What was a list."""

    __slots__ = ()


class WasDict(tuple[Any, ...]):
    """What was a dictionary, as pairs."""

    __slots__ = ()


class WasNode(int):
    """What was a node: its id."""

    __slots__ = ()


def read_slot(entry: SlotLedger) -> Values:
    """Return a ledger entry's fields, the ring as a tuple."""
    values = list(_SLOT(entry))
    values[RING] = tuple(values[RING])
    return tuple(values)


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
    return tuple(value.id if type(value) is Request else _frozen(value) for value in _ROW(row))


def _frozen(value: Any) -> Any:
    kind = type(value)
    if kind is list:
        return WasList(value)
    if kind is dict:
        return WasDict(value.items())
    return WasNode(value.id) if kind is Node else value
