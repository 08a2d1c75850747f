"""Reads a scenario file: YAML 1.2, schema, then whether its steps can happen in this order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from replaylife.lifecycle.config import CacheConfig, ModelConfig
from replaylife.lifecycle.scenario.complaints import broken_parts, complaints
from replaylife.lifecycle.scenario.crowding import too_many_at_once
from replaylife.lifecycle.scenario.errors import Problem, ScenarioError
from replaylife.lifecycle.scenario.reading import MAX_BYTES, Document, read_document
from replaylife.lifecycle.scenario.rehearsal import rehearse
from replaylife.lifecycle.scenario.schema import ScenarioFile, Step


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
    document = read_document(raw)
    parsed, problems = _check(document)
    if parsed is None or problems:
        raise ScenarioError(str(path), problems)
    return Scenario(
        name=path.stem,
        path=str(path),
        title=parsed.title,
        description=parsed.description.strip(),
        model=ModelConfig(**parsed.model.model_dump()),
        cache=CacheConfig(**parsed.cache.model_dump(exclude={"profile"})),
        faults=tuple(parsed.faults),
        steps=tuple(
            NumberedStep(document.line_of(("steps", index)), step) for index, step in enumerate(parsed.steps)
        ),
        digest=hashlib.sha256(raw).hexdigest()[:16],
    )


def _read(path: Path) -> bytes:
    """Return the bytes of a file, one more than are allowed where there are more."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ScenarioError(str(path), [Problem(1, f"cannot be read: {error.strerror}")]) from None


def _check(document: Document) -> tuple[ScenarioFile | None, list[Problem]]:
    """Return what the file says, if it says anything whole, and every mistake of it.

    Where the schema finds mistakes, the steps that neither have one nor are about a request of one that has
    are rehearsed all the same.
    """
    if not document.readable:
        return None, document.problems
    if not isinstance(document.data, dict):
        kind = {list: "a list", type(None): "nothing"}.get(type(document.data), "a single value")
        need = "a mapping with 'title' and 'steps'"
        return None, [*document.problems, Problem(1, f"found {kind}, need {need}")]
    numbers = list(range(len(_steps(document.data))))
    try:
        parsed = ScenarioFile.model_validate(document.data)
    except ValidationError as error:
        problems = [*document.problems, *complaints(document, error)]
        sound, numbers = _sound_part(document, broken_parts(document, error))
        return None, [*problems, *_rehearse_part(document, sound, numbers)]
    return parsed, [*document.problems, *_rehearse(document, parsed, numbers)]


def _rehearse_part(document: Document, sound: dict[str, Any], numbers: list[int]) -> list[Problem]:
    try:
        return _rehearse(document, ScenarioFile.model_validate(sound), numbers)
    except ValidationError:
        return []  # too little of it is left


def _rehearse(document: Document, parsed: ScenarioFile, numbers: list[int]) -> list[Problem]:
    """Return what cannot happen; ``numbers`` are the places of ``parsed.steps`` in the document."""
    lines = [document.line_of(("steps", number)) for number in numbers]
    model = ModelConfig(**parsed.model.model_dump())
    data = [document.data["steps"][number] for number in numbers]
    problems = rehearse(model, list(zip(lines, parsed.steps, strict=True)))
    return problems + too_many_at_once(
        parsed.cache.slots, parsed.cache.strategy, list(zip(lines, data, strict=True))
    )


def _sound_part(document: Document, broken: set[tuple[int | str, ...]]) -> tuple[dict[str, Any], list[int]]:
    """Return the document without its broken parts, and the numbers of the steps that it keeps.

    A broken step leaves in doubt whatever it names; so does one that was left out for that.
    """
    data = document.data
    kept = {key: value for key, value in data.items() if (key,) not in broken}
    kept.setdefault("title", "unknown")
    if ("cache",) in broken:
        kept["cache"] = {"slots": 4096}  # as many as there can be: how many there are is not known
    steps = _steps(data)
    doubtful: set[str] = set()
    numbers: list[int] = []
    for number, step in enumerate(steps):
        if ("steps", number) in broken or not doubtful.isdisjoint(_texts(step, keys=True)):
            doubtful.update(_texts(step, keys=False))
        else:
            numbers.append(number)
    return {**kept, "steps": [steps[number] for number in numbers]}, numbers


def _steps(data: dict[Any, Any]) -> list[Any]:
    steps = data.get("steps")
    return steps if isinstance(steps, list) else []


def _texts(node: Any, *, keys: bool) -> Iterator[str]:
    """Yield every text in a part of the document, the names of requests among them."""
    if isinstance(node, dict):
        for key, value in node.items():
            if keys and isinstance(key, str):
                yield key
            yield from _texts(value, keys=keys)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value, keys=keys)
    elif isinstance(node, str):
        yield node
