"""Reads a scenario file: YAML 1.2, schema, then whether its steps can happen in this order."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from replaylife.lifecycle.config import CacheConfig, ModelConfig
from replaylife.lifecycle.names import nearest
from replaylife.lifecycle.scenario.errors import Problem, ScenarioError
from replaylife.lifecycle.scenario.rehearsal import rehearse
from replaylife.lifecycle.scenario.schema import ScenarioFile, Step

MAX_BYTES = 1_000_000
MAX_DEPTH = 12


@dataclass(frozen=True, slots=True)
class NumberedStep:
    """A step and the line it stands on (from 1)."""

    line: int
    step: Step


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario that can be played: checked, with the line of each step."""

    name: str
    path: str
    title: str
    description: str
    model: ModelConfig
    cache: CacheConfig
    faults: tuple[str, ...]
    steps: tuple[NumberedStep, ...]
    digest: str


def load_scenario(path: Path) -> Scenario:
    """Read and check the scenario at ``path``. Raises :class:`ScenarioError` with every mistake found."""
    raw = _read(path)
    document = _parse(str(path), raw)
    parsed = _validate(str(path), document)
    steps = tuple(
        NumberedStep(_line_of(document, ("steps", index)), step) for index, step in enumerate(parsed.steps)
    )
    scenario = Scenario(
        name=path.stem,
        path=str(path),
        title=parsed.title,
        description=parsed.description.strip(),
        model=ModelConfig(**parsed.model.model_dump()),
        cache=CacheConfig(**parsed.cache.model_dump()),
        faults=tuple(parsed.faults),
        steps=steps,
        digest=hashlib.sha256(raw).hexdigest()[:16],
    )
    problems = rehearse(scenario.model, [(entry.line, entry.step) for entry in steps])
    if problems:
        raise ScenarioError(str(path), problems)
    return scenario


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ScenarioError(
                str(path), [Problem(1, f"the file has {size} bytes, at most {MAX_BYTES} are read")]
            )
        return path.read_bytes()
    except OSError as error:
        raise ScenarioError(str(path), [Problem(1, f"cannot be read: {error.strerror}")]) from None


def _parse(path: str, raw: bytes) -> CommentedMap:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ScenarioError(path, [Problem(line, "the file is not UTF-8 text; is it a scenario?")]) from None
    problem = _unsafe_markup(text)
    if problem is not None:
        raise ScenarioError(path, [problem])
    try:
        document = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise ScenarioError(path, [Problem(line, f"not YAML: {_first_line(error.problem)}")]) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise ScenarioError(path, [Problem(1, f"not YAML: {_first_line(str(error))}")]) from None
    if not isinstance(document, CommentedMap):
        kind = "nothing" if document is None else type(document).__name__
        raise ScenarioError(path, [Problem(1, f"found {kind}, need a mapping with 'title' and 'steps'")])
    return document


def _unsafe_markup(text: str) -> Problem | None:
    """Refuse, before parsing, what could make parsing slow: depth far beyond the schema's."""
    for number, line in enumerate(text.splitlines(), start=1):
        indent = len(line) - len(line.lstrip(" "))
        if indent > 40 * MAX_DEPTH or max(line.count("["), line.count("{")) > 200 * MAX_DEPTH:
            return Problem(number, "nested far deeper than any scenario; is it one?")
    return None


def _first_line(text: str | None) -> str:
    lines = (text or "unreadable").strip().splitlines() or ["unreadable"]
    return lines[0]


def _validate(path: str, document: CommentedMap) -> ScenarioFile:
    try:
        return ScenarioFile.model_validate(_plain(document))
    except RecursionError:
        raise ScenarioError(path, [Problem(1, "refers to itself through an alias")]) from None
    except ValidationError as error:
        problems = {
            Problem(_line_of(document, entry["loc"]), _describe(entry["loc"], entry)): None
            for entry in error.errors()
        }
        raise ScenarioError(path, list(problems)) from None


def _plain(node: Any, depth: int = 0) -> Any:
    """Return the document as plain dicts, lists and scalars, without ruamel's types."""
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(node, Mapping):
        return {_plain(key, depth + 1): _plain(value, depth + 1) for key, value in node.items()}
    if isinstance(node, Sequence) and not isinstance(node, str | bytes):
        return [_plain(value, depth + 1) for value in node]
    if isinstance(node, bool) or node is None:
        return node
    if isinstance(node, int):
        return int(node)
    if isinstance(node, float):
        return float(node)
    return str(node)


def _line_of(document: Any, location: Sequence[int | str]) -> int:
    """Return the line (from 1) of the deepest part of ``location`` that the document has."""
    line, node = 1, document
    for part in location:
        if isinstance(node, CommentedMap) and part in node:
            line = node.lc.key(part)[0] + 1
        elif isinstance(node, CommentedSeq) and isinstance(part, int) and part < len(node):
            line = node.lc.item(part)[0] + 1
        else:
            break
        node = node[part]
    return line


def _describe(location: Sequence[int | str], entry: Any) -> str:
    """Say in our words where the mistake is, what was found, what is needed, and the nearest name."""
    named = [str(part) for part in location if isinstance(part, str) and "[" not in part]
    where = ".".join(named)
    found, kind, context = entry["input"], entry["type"], entry.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown key {named[-1]!r}{nearest(named[-1], _siblings(named[:-1]))}"
    if kind == "missing":
        return f"{where}: missing"
    if kind == "value_error":
        return f"{where}: {context['error']}"
    message = entry["msg"].removeprefix("Input should be ")
    return f"{where}: found {_show(found)}, need {message}"


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _siblings(location: Sequence[str]) -> list[str]:
    """Return the keys that the schema allows at ``location``."""
    model: Any = ScenarioFile
    for part in location:
        field = model.model_fields.get(part) if hasattr(model, "model_fields") else None
        if field is None:
            return []
        model = _model_in(field.annotation)
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
