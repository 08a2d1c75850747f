"""From one snapshot to the next: what is written of it, and how it is put together again.

Derived from the fields of :class:`Snapshot`. *Views* (slots, nodes, requests) are written with their identity
and the fields that changed; a new one with all its fields; which there are, and in which order, as
``slot_ids``, ``node_ids``, ``request_ids`` when that changed. A *list* (ring, free list, LRU, ids) is written
whole, or as ``{"at": i, "cut": n, "put": [...]}``: from place ``i`` take ``n`` entries out and put these in.
Everything else is written as it is now. Measurements are no change: they belong to their step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args, get_origin

from replaylife.lifecycle.snapshot import Snapshot
from replaylife.lifecycle.trace.codec import (
    Codec,
    Definitions,
    Json,
    codec_of,
    decode_fields,
    describe_object,
    hints_of,
    register,
)
from replaylife.lifecycle.trace.errors import Malformed, show
from replaylife.lifecycle.trace.lines import Changes

_IDENTITIES = ("index", "id")
_SPLICE = {"at", "cut", "put"}


@dataclass(frozen=True, slots=True)
class _Views:
    """One kind of view: ``slots`` by ``index``, ``nodes`` by ``id``, ``requests`` by ``id``."""

    name: str
    kind: type
    identity: str
    whole: Codec
    parts: Mapping[str, Codec]

    @property
    def ids(self) -> str:
        return f"{self.name.removesuffix('s')}_ids"

    @property
    def one(self) -> str:
        return self.name.removesuffix("s")


def encode_changes(before: Snapshot, after: Snapshot) -> Changes:
    """Return what leads from ``before`` to ``after``, measurements aside."""
    found = Changes()
    for name in _FIELDS:
        old, new = getattr(before, name), getattr(after, name)
        if old is new or old == new:
            continue
        if name in _VIEWS:
            found.update(_encode_views(_VIEWS[name], old, new))
        else:
            found[name] = _encode_field(_FIELDS[name], old, new)
    return found


def apply_changes(before: Snapshot, changes: Mapping[str, Json]) -> Snapshot:
    """Return the snapshot that ``changes`` lead to. Raises :class:`Malformed` where they do not fit it."""
    fields: dict[str, Any] = {}
    ids = {views.ids: views.name for views in _VIEWS.values()}
    for name in changes:
        if name in _VIEWS or name in ids:
            views = _VIEWS[ids.get(name, name)]
            if views.name not in fields:
                fields[views.name] = _apply_views(views, getattr(before, views.name), changes)
        elif name in _FIELDS:
            try:
                fields[name] = _decode_field(_FIELDS[name], getattr(before, name), changes[name])
            except Malformed as wrong:
                raise wrong.inside(name) from None
        else:
            raise Malformed(f"unknown field {show(name)}")
    return replace(before, **fields) if fields else before


# -- views ---------------------------------------------------------------------------------------------


def _encode_views(views: _Views, old: Sequence[Any], new: Sequence[Any]) -> dict[str, Json]:
    known = {getattr(view, views.identity): view for view in old}
    changed = [
        _encode_view(views, known.get(getattr(view, views.identity)), view)
        for view in new
        if known.get(getattr(view, views.identity)) is not view
    ]
    found: dict[str, Json] = {}
    ids = [[getattr(view, views.identity) for view in side] for side in (old, new)]
    if ids[0] != ids[1]:
        found[views.ids] = _splice(ids[0], ids[1], lambda entry: entry)
    if changed := [view for view in changed if view is not None]:
        found[views.name] = changed
    return found


def _encode_view(views: _Views, old: Any, new: Any) -> Json:
    if old is None:
        return views.whole.encode(new)
    found = {
        name: _encode_field(part, getattr(old, name), getattr(new, name))
        for name, part in views.parts.items()
        if getattr(old, name) != getattr(new, name)
    }
    return {views.identity: getattr(new, views.identity), **found} if found else None


def _apply_views(views: _Views, old: Sequence[Any], changes: Mapping[str, Json]) -> tuple[Any, ...]:
    known = {getattr(view, views.identity): view for view in old}
    order = list(known)
    if views.ids in changes:
        try:
            order = list(_ids_of(views, order, changes[views.ids]))
        except Malformed as wrong:
            raise wrong.inside(views.ids) from None
    present = set(order)
    listed = changes.get(views.name, [])
    if type(listed) is not list:
        raise Malformed(f"found {show(listed)}, need an array", views.name)
    for place, value in enumerate(listed):
        try:
            view = _apply_view(views, known, present, value)
        except Malformed as wrong:
            raise wrong.inside(place).inside(views.name) from None
        known[getattr(view, views.identity)] = view
    if missing := [identity for identity in order if identity not in known]:
        raise Malformed(f"names {views.one} {show(missing[0])}, which does not exist", views.ids)
    return tuple(known[identity] for identity in order)


def _ids_of(views: _Views, old: Sequence[Any], value: Json) -> tuple[Any, ...]:
    ids = _decode_sequence(views.parts[views.identity], old, value)
    if len(set(ids)) != len(ids):
        twice = next(identity for identity, times in Counter(ids).items() if times > 1)
        raise Malformed(f"names {views.one} {show(twice)} twice")
    return ids


def _apply_view(views: _Views, known: Mapping[Any, Any], present: set[Any], value: Json) -> Any:
    if type(value) is not dict or views.identity not in value:
        raise Malformed(f'found {show(value)}, need an object with "{views.identity}"')
    identity = views.parts[views.identity].decode(value[views.identity])
    if identity not in present:
        raise Malformed(f"changes {views.one} {show(identity)}, which does not exist")
    old = known.get(identity)
    if old is None:
        return views.whole.decode(value)
    fields: dict[str, Any] = {}
    for name, part in value.items():
        if name not in views.parts:
            decode_fields(views.parts, {name: part})
        try:
            fields[name] = _decode_field(views.parts[name], getattr(old, name), part)
        except Malformed as wrong:
            raise wrong.inside(name) from None
    return replace(old, **fields)


# -- lists ---------------------------------------------------------------------------------------------


def _encode_field(part: Codec, old: Any, new: Any) -> Json:
    item = _ITEMS.get(part)
    return part.encode(new) if item is None else _splice(old, new, item.encode)


def _decode_field(part: Codec, old: Any, value: Json) -> Any:
    item = _ITEMS.get(part)
    return part.decode(value) if item is None else _decode_sequence(item, old, value)


def _splice(old: Sequence[Any], new: Sequence[Any], encode: Any) -> Json:
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    rest = shorter - head
    tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    put = [encode(entry) for entry in new[head : len(new) - tail]]
    if len(new) <= len(put) + 2:
        return [encode(entry) for entry in new]
    return {"at": head, "cut": len(old) - head - tail, "put": put}


def _decode_sequence(item: Codec, old: Sequence[Any], value: Json) -> tuple[Any, ...]:
    whole = type(value) is list
    if not whole and (type(value) is not dict or value.keys() != _SPLICE or type(value["put"]) is not list):
        raise Malformed(f'found {show(value)}, need an array, or an object of "at", "cut" and "put"')
    put: list[Any] = []
    for place, entry in enumerate(value if whole else value["put"]):
        try:
            put.append(item.decode(entry))
        except Malformed as wrong:
            raise wrong.inside(place) from None
    if whole:
        return tuple(put)
    at, cut = value["at"], value["cut"]
    if not (type(at) is int and type(cut) is int and at >= 0 and cut >= 0 and at + cut <= len(old)):
        raise Malformed(f"takes {show(cut)} entries out at {show(at)} of a list of {len(old)}")
    return (*old[:at], *put, *old[at + cut :])


# -- the shape of a snapshot, from its type hints --------------------------------------------------------


def _item_hint(hint: Any) -> Any:
    """The type of the entries of a ``tuple[X, ...]``; ``None`` for any other type."""
    arguments = get_args(hint)
    return arguments[0] if get_origin(hint) is tuple and arguments[1:] == (...,) else None


def _lists_in(kind: type) -> Iterable[tuple[Codec, Codec]]:
    for hint in hints_of(kind).values():
        if (item := _item_hint(hint)) is not None:
            yield codec_of(hint), codec_of(item)


def _views_in(kind: type) -> Iterable[_Views]:
    for name, hint in hints_of(kind).items():
        item = _item_hint(hint)
        identity = next(iter(getattr(item, "__dataclass_fields__", [""])))
        if identity in _IDENTITIES:
            parts = {part: codec_of(of) for part, of in hints_of(item).items()}
            yield _Views(name, item, identity, codec_of(item), parts)


_VIEWS = {views.name: views for views in _views_in(Snapshot)}
_FIELDS = {name: codec_of(hint) for name, hint in hints_of(Snapshot).items() if name != "measurements"}
_ITEMS = dict(pair for kind in (Snapshot, *(v.kind for v in _VIEWS.values())) for pair in _lists_in(kind))


def _decode(value: Json) -> Changes:
    if type(value) is not dict:
        raise Malformed(f"found {show(value)}, need an object")
    return Changes(value)


def _describe(known: Definitions) -> Json:
    properties: dict[str, Json] = {}
    for name, part in _FIELDS.items():
        properties[name] = _field_schema(part, known)
    for views in _VIEWS.values():
        name = f"Changed{views.kind.__name__}"
        known[name] = describe_object(views.kind, {}, [views.identity], known)
        known[name]["description"] = f"A new {views.kind.__name__}, or the changed fields of a known one."
        known[name]["properties"] = {key: _field_schema(part, known) for key, part in views.parts.items()}
        properties[views.name] = {"type": "array", "items": {"$ref": f"#/$defs/{name}"}}
        identity = views.parts[views.identity].describe(known)
        properties[views.ids] = _list_schema(identity)
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _field_schema(part: Codec, known: Definitions) -> Json:
    item = _ITEMS.get(part)
    return part.describe(known) if item is None else _list_schema(item.describe(known))


def _list_schema(item: Json) -> Json:
    array = {"type": "array", "items": item}
    count = {"type": "integer", "minimum": 0}
    splice = {
        "description": "From place `at` take `cut` entries out and put these in.",
        "type": "object",
        "properties": {"at": count, "cut": count, "put": array},
        "required": sorted(_SPLICE),
        "additionalProperties": False,
    }
    return {"anyOf": [array, splice]}


register(Changes, Codec(lambda changes: changes, _decode, _describe))
