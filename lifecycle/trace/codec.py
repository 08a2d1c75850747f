"""Between plain data and JSON, both ways and as a JSON Schema, from the type hints of dataclasses alone.

A new field, event or action needs nothing here. What is understood: ``bool``, ``int``, ``float``, ``str``,
``Literal``, ``X | None``, tuples, named tuples (as arrays), dataclasses (as objects), and unions of
dataclasses (as objects told apart by ``"type"``, the name of the class). Two more rules: a float that JSON
has no word for is the text ``"nan"``, ``"inf"`` or ``"-inf"``; a :class:`Fold` is ``[length, digest]``, the
digest in hexadecimal, because many readers of JSON lose integers above 2**53. Fields whose default is an
empty tuple or text are left out when they are empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from replaylife.lifecycle.names import nearest
from replaylife.lifecycle.trace.errors import Malformed, show
from replaylife.pool import Fold

Json: TypeAlias = Any
Definitions: TypeAlias = dict[str, Json]

MAX_INT = 2**63 - 1
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True, slots=True)
class Codec:
    """How one type is written, read (raises :class:`Malformed`) and described."""

    encode: Callable[[Any], Json]
    decode: Callable[[Json], Any]
    describe: Callable[[Definitions], Json]


_registered: dict[Any, Codec] = {}


def register(hint: Any, codec: Codec) -> None:
    """Give a type a form of its own."""
    _registered[hint] = codec


@cache
def codec_of(hint: Any) -> Codec:
    """Return the codec of a type. Raises ``TypeError`` for one that has no form in JSON."""
    if hint in _registered:
        return _registered[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin is tuple:
        return _sequence(arguments[0]) if arguments[1:] == (...,) else _row(tuple, arguments)
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        hints = get_type_hints(hint)
        return _row(hint, tuple(hints[name] for name in hint._fields), hint._fields)
    if isinstance(hint, type) and is_dataclass(hint):
        return _object(hint)
    raise TypeError(f"{hint!r} has no form in a trace; register one")


def hints_of(kind: type) -> dict[str, Any]:
    """Return the type of each field of a dataclass."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


# -- scalars -------------------------------------------------------------------------------------------


def _decode_bool(value: Json) -> bool:
    if type(value) is not bool:
        raise Malformed(f"found {show(value)}, need true or false")
    return value


def _decode_int(value: Json) -> int:
    if type(value) is not int:
        raise Malformed(f"found {show(value)}, need a whole number")
    if abs(value) > MAX_INT:
        raise Malformed(f"found {show(value)}, need a whole number of at most 64 bits")
    return value


def _decode_text(value: Json) -> str:
    if type(value) is not str:
        raise Malformed(f"found {show(value)}, need text")
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        raise Malformed("found half a surrogate pair, need text")
    return value


def _encode_float(value: float) -> Json:
    return value if math.isfinite(value) else str(value)


def _decode_float(value: Json) -> float:
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    if type(value) not in (int, float):
        raise Malformed(f'found {show(value)}, need a number, "nan", "inf" or "-inf"')
    try:
        return float(value)
    except OverflowError:
        raise Malformed(f"found {show(value)}, too large for a float") from None


def _decode_fold(value: Json) -> Fold:
    if type(value) is not list or len(value) != 2 or type(value[0]) is not int or type(value[1]) is not str:
        raise Malformed(f"found {show(value)}, need [length, digest in hexadecimal]")
    length, digest = value
    try:
        number = int(digest, 16) if len(digest) <= 16 and digest.isalnum() else -1
    except ValueError:
        number = -1
    if not 0 <= length <= MAX_INT or number < 0:
        raise Malformed(f"found [{show(length)}, {show(digest)}], need [length, digest in hexadecimal]")
    return Fold(length, number)


register(bool, Codec(lambda value: value, _decode_bool, lambda _: {"type": "boolean"}))
register(int, Codec(lambda value: value, _decode_int, lambda _: {"type": "integer"}))
register(str, Codec(lambda value: value, _decode_text, lambda _: {"type": "string"}))
register(
    float,
    Codec(_encode_float, _decode_float, lambda _: {"anyOf": [{"type": "number"}, {"enum": [*_SPECIAL]}]}),
)
register(
    Fold,
    Codec(
        lambda fold: [fold.length, f"{fold.digest:x}"],
        _decode_fold,
        lambda _: {
            "description": "Tokens [0, length) by length and running digest (hexadecimal).",
            "type": "array",
            "prefixItems": [{"type": "integer", "minimum": 0}, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
    ),
)


def _literal(words: tuple[Any, ...]) -> Codec:
    def decode(value: Json) -> Any:
        if value not in words or type(value) is not str:
            raise Malformed(f"found {show(value)}, need {' or '.join(map(repr, words))}")
        return value

    return Codec(lambda value: value, decode, lambda _: {"enum": list(words)})


# -- what is made of others ----------------------------------------------------------------------------


def _sequence(hint: Any) -> Codec:
    item = codec_of(hint)

    def decode(value: Json) -> tuple[Any, ...]:
        if type(value) is not list:
            raise Malformed(f"found {show(value)}, need an array")
        return tuple(_each(item, value))

    return Codec(
        lambda values: [item.encode(value) for value in values],
        decode,
        lambda known: {"type": "array", "items": item.describe(known)},
    )


def _each(item: Codec, values: Iterable[Json]) -> Iterable[Any]:
    for index, value in enumerate(values):
        try:
            yield item.decode(value)
        except Malformed as wrong:
            raise wrong.inside(index) from None


def _row(make: Any, hints: tuple[Any, ...], names: tuple[str, ...] = ()) -> Codec:
    """A tuple of fixed length, or a named one."""
    items = [codec_of(hint) for hint in hints]
    needed = f"an array of {len(items)}" + (f" ({', '.join(names)})" if names else "")

    def decode(value: Json) -> Any:
        if type(value) is not list or len(value) != len(items):
            raise Malformed(f"found {show(value)}, need {needed}")
        decoded: list[Any] = []
        for index, (item, part) in enumerate(zip(items, value, strict=True)):
            decoded += _placed(item, part, index)
        return make(*decoded) if names else tuple(decoded)

    def describe(known: Definitions) -> Json:
        parts = [item.describe(known) for item in items]
        parts = [{"title": name, **part} for name, part in zip(names, parts, strict=True)] if names else parts
        return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}

    return Codec(
        lambda values: [item.encode(value) for item, value in zip(items, values, strict=True)],
        decode,
        describe,
    )


def _placed(item: Codec, value: Json, place: int | str) -> list[Any]:
    try:
        return [item.decode(value)]
    except Malformed as wrong:
        raise wrong.inside(place) from None


def _union(arguments: tuple[Any, ...]) -> Codec:
    kinds = [kind for kind in arguments if kind is not type(None)]
    inner = codec_of(kinds[0]) if len(kinds) == 1 else tagged({kind.__name__: kind for kind in kinds})
    if len(kinds) == len(arguments):
        return inner
    return Codec(
        lambda value: None if value is None else inner.encode(value),
        lambda value: None if value is None else inner.decode(value),
        lambda known: {"anyOf": [inner.describe(known), {"type": "null"}]},
    )


def tagged(kinds: Mapping[str, type]) -> Codec:
    """Return the codec of a union of dataclasses, told apart by ``"type"``: the key in ``kinds``."""
    names = {kind: name for name, kind in kinds.items()}
    codecs = {name: codec_of(kind) for name, kind in kinds.items()}

    def encode(value: Any) -> Json:
        name = names[type(value)]
        return {"type": name, **codecs[name].encode(value)}

    def decode(value: Json) -> Any:
        if type(value) is not dict or "type" not in value:
            raise Malformed(f'found {show(value)}, need an object with "type"')
        name = value["type"]
        if type(name) is not str or name not in codecs:
            raise Malformed(f"no type is named {show(name)}{nearest(str(name)[:60], codecs)}", "type")
        return codecs[name].decode({key: part for key, part in value.items() if key != "type"})

    def describe(known: Definitions) -> Json:
        return {"oneOf": [_with_type(name, codecs[name].describe(known), known) for name in codecs]}

    return Codec(encode, decode, describe)


def _with_type(name: str, reference: Json, known: Definitions) -> Json:
    definition = known[reference["$ref"].rpartition("/")[2]]
    definition["properties"] = {"type": {"const": name}, **definition["properties"]}
    definition["required"] = list(dict.fromkeys(["type", *definition["required"]]))
    return reference


def _object(kind: type) -> Codec:
    parts = {name: codec_of(hint) for name, hint in hints_of(kind).items()}
    needed = [field.name for field in fields(kind) if _has_no_default(field)]
    droppable = {field.name for field in fields(kind) if field.default in ((), "")}

    def encode(value: Any) -> Json:
        found = {name: getattr(value, name) for name in parts}
        return {
            name: parts[name].encode(part) for name, part in found.items() if part or name not in droppable
        }

    def decode(value: Json) -> Any:
        if type(value) is not dict:
            raise Malformed(f"found {show(value)}, need an object")
        decoded = decode_fields(parts, value)
        if missing := [name for name in needed if name not in value]:
            raise Malformed(f"lacks {', '.join(map(repr, missing))}")
        return kind(**decoded)

    def describe(known: Definitions) -> Json:
        if kind.__name__ not in known:
            known[kind.__name__] = {}
            known[kind.__name__] |= describe_object(kind, parts, needed, known)
        return {"$ref": f"#/$defs/{kind.__name__}"}

    return Codec(encode, decode, describe)


def decode_fields(parts: Mapping[str, Codec], value: Mapping[str, Json]) -> dict[str, Any]:
    """Decode the fields that are there. Raises :class:`Malformed` for one that is unknown or wrong."""
    decoded: dict[str, Any] = {}
    for name, part in value.items():
        if name not in parts:
            raise Malformed(f"unknown field {show(name)}{nearest(name[:60], parts)}")
        decoded[name] = _placed(parts[name], part, name)[0]
    return decoded


def describe_object(
    kind: type, parts: Mapping[str, Codec], needed: Iterable[str], known: Definitions
) -> Json:
    """Return the JSON Schema of a dataclass with its docstring; no fields but these are allowed."""
    return {
        "description": " ".join((kind.__doc__ or "").replace("``", "`").split()),
        "type": "object",
        "properties": {name: part.describe(known) for name, part in parts.items()},
        "required": list(needed),
        "additionalProperties": False,
    }


def _has_no_default(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING
