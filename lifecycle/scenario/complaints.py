"""Turns the schema's errors into one readable problem per mistake."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from replaylife.lifecycle.names import nearest
from replaylife.lifecycle.scenario.errors import Problem
from replaylife.lifecycle.scenario.reading import Document
from replaylife.lifecycle.scenario.schema import ScenarioFile

Location: TypeAlias = tuple[int | str, ...]

MAX_MESSAGE = 1_000  # enough for a list of all faults

_NEEDS = {
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "on or off",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "string_pattern_mismatch": "a name: up to 64 letters, digits, '_', '.', '-', the first a letter or digit",
    "invalid_key": "a name as key",
    "none_required": "null",
}
_LIMITS = {
    "greater_than_equal": ("at least {ge:,}", "ge"),
    "less_than_equal": ("at most {le:,}", "le"),
    "too_short": ("{min_length:,} or more", "min_length"),
    "too_long": ("{max_length:,} at most", "max_length"),
    "string_too_short": ("at least {min_length:,} characters", "min_length"),
    "string_too_long": ("at most {max_length:,} characters", "max_length"),
}


class _Mistake(NamedTuple):
    """One error of the schema: its place in the document, and the union branches tried on the way there."""

    path: Location
    branches: tuple[Location, ...]
    details: ErrorDetails

    @property
    def kind(self) -> str:
        return self.details["type"]


def complaints(
    document: Document, error: ValidationError, schema: type[BaseModel] = ScenarioFile
) -> list[Problem]:
    """Return one problem for each mistake that the schema found."""
    found = [_locate(document.data, details) for details in error.errors()]
    chosen, merged = _settle_unions(found)
    problems = [
        Problem(
            document.line_of(mistake.path),
            _describe(mistake, merged.get(mistake.path), schema)[:MAX_MESSAGE],
        )
        for mistake in _without_consequences(chosen, schema)
    ]
    return list(dict.fromkeys(problems))


def broken_parts(document: Document, error: ValidationError) -> set[Location]:
    """Return the sections, and the steps, that have a mistake: paths of one part, or of two under steps."""
    paths = [_locate(document.data, details).path for details in error.errors()]
    return {path[: 2 if path[:1] == ("steps",) else 1] for path in paths}


def _locate(data: Any, details: ErrorDetails) -> _Mistake:
    """Part an error's location into the document's own path and the schema's names of union branches."""
    path: list[int | str] = []
    branches: list[Location] = []
    location, node = details["loc"], data
    for index, part in enumerate(location):
        inside = (isinstance(node, dict) and part in node) or (
            isinstance(node, list) and isinstance(part, int) and part < len(node)
        )
        if inside:
            path.append(part)
            node = node[part]
        elif not (details["type"] == "missing" and index == len(location) - 1):
            branches.append(location[: index + 1])
    return _Mistake(tuple(path), tuple(branches), details)


def _settle_unions(mistakes: Sequence[_Mistake]) -> tuple[list[_Mistake], dict[Location, list[str]]]:
    """Keep, of each union, the errors of the branches that the value fits by its type.

    Where it fits none, one error stays, and the second value names what each branch needs.
    """
    tried: defaultdict[Location, dict[Location, None]] = defaultdict(dict)  # in the schema's order
    unfit: dict[Location, _Mistake] = {}
    for mistake in mistakes:
        for branch in mistake.branches:
            tried[branch[:-1]][branch] = None
        last = mistake.branches[-1] if mistake.branches else None
        if last == mistake.details["loc"] and mistake.kind.endswith("_type"):
            unfit[last] = mistake
    merged: dict[Location, list[str]] = {}
    hopeless = {union for union, branches in tried.items() if all(branch in unfit for branch in branches)}
    for union in hopeless:
        tries = [unfit[branch] for branch in tried[union]]
        merged[tries[0].path] = [_need(mistake.details) for mistake in tries]
    kept = [m for m in mistakes if not any(b in unfit and b[:-1] not in hopeless for b in m.branches)]
    once: dict[tuple[Location, Location], _Mistake] = {}
    for mistake in kept:
        unions = [branch[:-1] for branch in mistake.branches if branch[:-1] in hopeless]
        once.setdefault((mistake.path, unions[0] if unions else mistake.details["loc"]), mistake)
    return list(once.values()), merged


def _without_consequences(mistakes: Iterable[_Mistake], schema: type[BaseModel]) -> list[_Mistake]:
    """Leave out missing keys whose name was only misspelt: the unknown key beside them says so."""
    all_of_them = list(mistakes)
    unknown = {(m.path[:-1], _suggestion(m, schema)) for m in all_of_them if m.kind == "extra_forbidden"}
    return [m for m in all_of_them if not (m.kind == "missing" and (m.path, m.details["loc"][-1]) in unknown)]


def _suggestion(mistake: _Mistake, schema: type[BaseModel]) -> str | None:
    close = re.search(r"did you mean '([^']*)'", _describe(mistake, None, schema))
    return close[1] if close else None


def _describe(mistake: _Mistake, alternatives: Sequence[str] | None, schema: type[BaseModel]) -> str:
    """Say in our words where the mistake is, what was found, what is needed, and the nearest name."""
    details, kind = mistake.details, mistake.kind
    named = [part for part in mistake.path if isinstance(part, str)]
    where = ".".join(named[1:] if named[:1] == ["steps"] and len(named) > 1 else named) or "the file"
    if kind == "extra_forbidden":
        known = _siblings(named[:-1], schema)
        return f"unknown key {_short(mistake.path[-1])}{nearest(str(mistake.path[-1]), known)}"
    if kind == "missing":
        missing = str(details["loc"][-1])
        return f"{missing}: missing" if where == "the file" else f"{where}: {missing!r} is missing"
    if kind == "value_error":
        message = str(details["ctx"]["error"])
        return message if named == ["steps"] else f"{where}: {message}"
    need = _need(details) if alternatives is None else " or ".join(dict.fromkeys(alternatives))
    return f"{where}: found {_show(details['input'], kind)}, need {need}"


def _need(details: ErrorDetails) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind in _NEEDS:
        return _NEEDS[kind]
    if kind in _LIMITS:
        pattern, key = _LIMITS[kind]
        return pattern.format(**{key: context[key]})
    if kind == "literal_error":
        names = re.findall(r"'([^']*)'", context["expected"])
        return f"{context['expected']}{_close(details['input'], names)}"
    return details["msg"].removeprefix("Input should be ")


def _close(found: Any, names: Sequence[str]) -> str:
    hint = nearest(found, names) if isinstance(found, str) else ""
    return hint if "did you mean" in hint else ""


def _show(value: Any, kind: str) -> str:
    """Name a value briefly: collections by what they are, all else as it reads."""
    if kind in ("too_short", "too_long"):
        return f"a list of {len(value):,}"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else _short(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _siblings(location: Sequence[str], schema: type[BaseModel]) -> list[str]:
    """Return the keys that the schema allows at ``location``."""
    model: Any = schema
    for part in location:
        field = model.model_fields.get(part) if hasattr(model, "model_fields") else None
        model = None if field is None else _model_in(field.annotation)
    return list(model.model_fields) if hasattr(model, "model_fields") else []


def _model_in(annotation: Any) -> Any:
    """Return the schema class inside ``list[X]``, ``X | None`` and their combinations."""
    if hasattr(annotation, "model_fields"):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _model_in(inner)
        if hasattr(found, "model_fields"):
            return found
    return annotation
