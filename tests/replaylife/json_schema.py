"""As much of JSON Schema as the schemas here use, so that they can be held against real documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

KINDS = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
KNOWN = {
    "$schema", "$defs", "$ref", "title", "description", "default", "type", "properties", "required",
    "items", "additionalProperties", "prefixItems", "minItems", "maxItems", "anyOf", "oneOf",
    "const", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern", "minProperties",
    "maxProperties", "propertyNames", "patternProperties",
}  # fmt: skip


def mistakes(value: Any, schema: Any, root: Any, at: str = "$") -> Iterator[str]:
    """Say where a value breaks a schema. Raises ``KeyError`` for a keyword that is not understood."""
    if unknown := schema.keys() - KNOWN:
        raise KeyError(unknown)
    if "$ref" in schema:
        yield from mistakes(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, at)
    if "type" in schema:
        kind = KINDS[schema["type"]]
        if not isinstance(value, kind) or (
            isinstance(value, bool) and schema["type"] in ("integer", "number")
        ):
            yield f"{at}: need {schema['type']}"
            return
    if "const" in schema and value != schema["const"]:
        yield f"{at}: need {schema['const']}"
    if "enum" in schema and not any(value == word and type(value) is type(word) for word in schema["enum"]):
        yield f"{at}: need one of {schema['enum']}"
    for keyword, fits in (("anyOf", lambda n: n >= 1), ("oneOf", lambda n: n == 1)):
        if keyword in schema:
            passed = sum(not any(mistakes(value, choice, root, at)) for choice in schema[keyword])
            if not fits(passed):
                yield f"{at}: fits {passed} of {keyword}"
    if isinstance(value, dict):
        yield from _object(value, schema, root, at)
    if isinstance(value, list):
        yield from _array(value, schema, root, at)
    if isinstance(value, int | float) and not schema.get("minimum", value) <= value <= schema.get(
        "maximum", value
    ):
        yield f"{at}: out of range"


def _object(value: dict[str, Any], schema: Any, root: Any, at: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    yield from (f"{at}: lacks {name}" for name in schema.get("required", ()) if name not in value)
    if not schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", len(value)):
        yield f"{at}: {len(value)} keys"
    for name, part in value.items():
        if name in properties:
            yield from mistakes(part, properties[name], root, f"{at}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{at}: unknown {name}"
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from mistakes(part, schema["additionalProperties"], root, f"{at}.{name}")


def _array(value: list[Any], schema: Any, root: Any, at: str) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield f"{at}: {len(value)} entries"
    first = schema.get("prefixItems", [])
    for place, part in enumerate(value):
        kind = first[place] if place < len(first) else schema.get("items", {})
        yield from mistakes(part, kind, root, f"{at}[{place}]")
