"""Slots, nodes, requests and steps as tuples: readers and writers, compiled from what the classes declare.

A search reads and writes a few objects for every action that it tries. Going through names with ``getattr``
takes most of its time, so each class gets a function that names its attributes in code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from replaylife.lifecycle.explore.parts import Values
from replaylife.lifecycle.host_tier import CopyInFlight
from replaylife.lifecycle.planned import PlannedRow, PlannedStep, Window
from replaylife.lifecycle.request import Request
from replaylife.pool import StoredCheckpoint
from replaylife.pool.ledger import SlotLedger
from replaylife.radix import Node

_NODE_HINTS = {"parent": "Node | None", "children": "dict[Tokens, Node]"}  # declared in its constructor
NODE_ID = Node.__slots__.index("id")


class _Form(NamedTuple):
    """How an attribute is read into a tuple and written from it: ``{0}`` is the attribute, or its value."""

    read: str
    write: str


_PLAIN = _Form("{0}", "{0}")
_LIST = _Form("tuple({0})", "list({0})")
_DICT = _Form("tuple({0}.items())", "dict({0})")
_FORMS = {
    "Node | None": _Form("None if {0} is None else {0}.id", "None if {0} is None else nodes[{0}]"),
    "Request": _Form(  # a fault may leave rows of one that has ended
        "{0}.id if running.get({0}.id) is {0} else request.read({0})",
        "requests[{0}] if type({0}) is str else request.make({0})",
    ),
    "Request | None": _Form("None if {0} is None else {0}.id", "None if {0} is None else requests[{0}]"),
    "Window | None": _Form("None if {0} is None else window.read({0})", "{0} and window.make({0})"),
    "list[PlannedRow]": _Form("tuple(map(row.read, {0}))", "list(map(row.make, {0}))"),
    "dict[Tokens, Node]": _Form(
        "tuple([(page, child.id) for page, child in {0}.items()])",
        "{{page: nodes[child] for page, child in {0}}}",
    ),
}
"""By the annotation; others are kept as they are, lists and dictionaries as tuples."""


class Codec(NamedTuple):
    """Reads an object of one class into a tuple, writes one, and makes one."""

    read: Callable[[Any], Values]
    write: Callable[[Any, Values], None]
    make: Callable[[Values], Any]


class Pieces:
    """The codecs of one engine's objects.

    Nodes are kept by id and requests that are ``running`` by name; both are looked up in these when written.
    """

    def __init__(
        self, nodes: Mapping[int, Node], requests: Mapping[str, Request], running: Mapping[str, Request]
    ) -> None:
        names: dict[str, Any] = {"nodes": nodes, "requests": requests, "running": running}
        self.slot, self.request = _codec(SlotLedger, names), _codec(Request, names)
        names["request"] = self.request
        self.node = _codec(Node, names, _NODE_HINTS)
        names["window"] = _codec(Window, names)
        names["row"] = _codec(PlannedRow, names)
        self.step = _codec(PlannedStep, names)
        self.place, self.copy = _codec(StoredCheckpoint, names), _codec(CopyInFlight, names)


def _codec(kind: Any, names: Mapping[str, Any], hints: Mapping[str, str] | None = None) -> Codec:
    """Compile the codec of a slotted class, whose forms may use ``names``."""
    slots: tuple[str, ...] = kind.__slots__
    declared = {**inspect.get_annotations(kind), **(hints or {})}
    forms = [_form(str(declared.get(name, ""))) for name in slots]
    reads = [form.read.format(f"it.{name}") for name, form in zip(slots, forms, strict=True)]
    targets = [
        f"it.{name}" if form is _PLAIN else f"new_{name}" for name, form in zip(slots, forms, strict=True)
    ]
    writes = [
        f"    it.{name} = {form.write.format(f'new_{name}')}"
        for name, form in zip(slots, forms, strict=True)
        if form is not _PLAIN
    ]
    source = [
        f"def read(it):\n    return ({', '.join(reads)},)",
        f"def write(it, values):\n    {', '.join(targets)}, = values",
        *writes,
        "def make(values):\n    it = new(kind)\n    write(it, values)\n    return it",
    ]
    made: dict[str, Any] = {**names, "kind": kind, "new": object.__new__}
    exec("\n".join(source), made)
    return Codec(made["read"], made["write"], made["make"])


def _form(hint: str) -> _Form:
    if hint in _FORMS:
        return _FORMS[hint]
    return _LIST if hint.startswith("list[") else _DICT if hint.startswith("dict[") else _PLAIN
