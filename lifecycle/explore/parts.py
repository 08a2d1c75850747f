"""The parts of an engine that can change: found by walking from it, read into tuples and written back."""

from __future__ import annotations

import inspect
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from typing import Any, NamedTuple, TypeAlias

from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.host_tier import HostTier
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.snapshot import Snapshot
from replaylife.lifecycle.snapshotter import Snapshotter
from replaylife.lifecycle.store import StateStore
from replaylife.pool import CheckpointPool, MambaPool
from replaylife.pool.ledger import Ledger
from replaylife.radix import Node, RadixTree

Values: TypeAlias = tuple[Any, ...]

_PLAIN = (int, str, float, bool, tuple, frozenset, type(None))
_FILLED = (list, set, deque, OrderedDict, dict)
_ELSEWHERE: dict[type, set[str]] = {  # what is read and written by rules of its own: see memento.py
    ReferenceEngine: {"requests", "_snapshot", "_changed"},
    StateStore: {"events"},
    MambaPool: {"touched"},
    RadixTree: {"root", "_nodes", "_lru", "_hosts", "touched"},
    HostTier: {"copies"},
    CheckpointPool: {"places", "touched"},
    Ledger: {"slots"},
    Snapshotter: {
        *("_slots", "_nodes", "_node_views", "_views", "_node_holds", "_request_holds", "_step_holds"),
        *("_free_list", "_lru", "touched_requests", "_changed_slots"),
    },
}
CONSTANT = frozenset(
    {
        *("capacity", "page_size", "num_slots", "tensors", "logging", "_grid", "_vocab", "_ring_length"),
        *("_track_point", "_tracks", "grid", "host", "peer"),
    }
)
"""Attributes that no action changes; a test watches them."""


class Part(NamedTuple):
    """One object of the engine, and the names of its simple attributes that can change."""

    object: object
    names: tuple[str, ...]


class Cells:
    """Simple attributes of all parts of an engine: numbers, texts, and containers of those.

    All are read, and written back, by one function each, compiled from their names: many times as fast as one
    by one. ``parts`` are those found at the beginning.
    """

    def __init__(self, engine: ReferenceEngine) -> None:
        self.parts = tuple(_find_parts(engine))
        self._held = [vars(part.object) for part in self.parts if hasattr(part.object, "__dict__")]
        self._num_held = sum(map(len, self._held))
        self._at_first = [{name for name, _ in _attributes(part.object)} for part in self.parts]
        reads, targets, writes = list[str](), list[str](), list[str]()
        for number, part in enumerate(self.parts):
            for name in part.names:
                value, way = getattr(part.object, name), f"part_{number}.{name}"
                filled, kept = isinstance(value, _FILLED), f"value_{len(reads)}"
                now = f"tuple({way}.items())" if isinstance(value, dict) else f"tuple({way})"
                reads.append(now if filled else way)
                targets.append(kept if filled else way)
                if filled:  # into the same container: others hold it, too
                    add = "extend" if isinstance(value, list | deque) else "update"
                    writes.append(f"    if ({kept} or {way}) and {kept} != {now}:")
                    writes.append(f"        {way}.clear()\n        {way}.{add}({kept})")
        source = [
            f"def read():\n    return ({', '.join(reads)},)",
            f"def write(values):\n    {', '.join(targets)}, = values",
            *writes,
        ]
        made: dict[str, Any] = {f"part_{number}": part.object for number, part in enumerate(self.parts)}
        exec("\n".join(source), made)
        self.read: Callable[[], Values] = made["read"]  # the values, containers as tuples
        self.write: Callable[[Values], None] = made["write"]  # puts them back, contents where they differ

    def require_nothing_new(self) -> None:
        """Raise ``TypeError`` where an attribute has appeared that no part knows of."""
        held = sum(map(len, self._held))
        if held == self._num_held:
            return
        self._num_held = held
        for part, at_first in zip(self.parts, self._at_first, strict=True):
            kinds = _PLAIN + _FILLED
            now = {name for name, value in _attributes(part.object) if isinstance(value, kinds)}
            new = sorted(now - at_first - CONSTANT - set(part.names))
            if new:
                raise TypeError(
                    f"{type(part.object).__name__}.{new[0]} appeared during the search; set it when the "
                    "engine is built, or annotate it in the class with a default"
                )


def _find_parts(engine: ReferenceEngine) -> Iterator[Part]:
    """Yield every object that can be reached from an engine and has simple attributes that can change."""
    tables: Sequence[object] = (engine.requests, engine.stepper.in_flight, engine.store.tree._nodes)
    seen: set[int] = set()
    queue: list[object] = [engine]
    while queue:
        thing = queue.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        names, special = set(_declared(thing)), _elsewhere(thing)
        for name, value in _attributes(thing):
            if name in special or any(value is table for table in tables):
                continue
            if isinstance(value, _PLAIN + _FILLED):
                names.add(name)
            elif _is_part(value):
                queue.append(value)
        if names - CONSTANT:
            yield Part(thing, tuple(sorted(names - CONSTANT)))


def _elsewhere(thing: object) -> set[str]:
    return {name for kind, names in _ELSEWHERE.items() if isinstance(thing, kind) for name in names}


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
            for name, annotation in inspect.get_annotations(kind).items():
                default = vars(kind).get(name, ...)
                if not str(annotation).startswith("ClassVar") and isinstance(default, _PLAIN):
                    yield name
