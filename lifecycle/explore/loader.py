"""Reads a scope file: YAML 1.2, schema, then whether its conversations can be told apart."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from replaylife.lifecycle.config import ModelConfig
from replaylife.lifecycle.explore.conversations import Conversation, conversations
from replaylife.lifecycle.explore.schema import Scope
from replaylife.lifecycle.scenario.complaints import complaints
from replaylife.lifecycle.scenario.errors import Problem, ScenarioError
from replaylife.lifecycle.scenario.reading import MAX_BYTES, Document, read_document


def shipped_scopes() -> dict[str, str]:
    """Return the name and file name of every scope in the package."""
    names = (entry.name for entry in files("replaylife.lifecycle.explore.scopes").iterdir())
    return {name.removesuffix(".yaml"): name for name in sorted(names) if name.endswith(".yaml")}


def shipped_scope(name: str) -> Scope:
    """Return a scope of the package by name. Raises ``KeyError`` where there is no such."""
    entry = files("replaylife.lifecycle.explore.scopes").joinpath(shipped_scopes()[name])
    return parse_scope(entry.read_bytes(), name)


def load_scope(path: Path) -> Scope:
    """Read and check the scope at ``path``. Raises :class:`ScenarioError` with every mistake found."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ScenarioError(str(path), [Problem(1, f"cannot be read: {error.strerror}")]) from None
    return parse_scope(raw, str(path))


def parse_scope(raw: bytes, path: str) -> Scope:
    """Read and check the bytes of a scope file; ``path`` is what its mistakes are said of."""
    document = read_document(raw)
    if not document.readable:
        raise ScenarioError(path, document.problems)
    if not isinstance(document.data, dict):
        need = "need a mapping with 'title', 'conversations' and 'actions'"
        raise ScenarioError(path, [*document.problems, Problem(1, f"found no mapping, {need}")])
    try:
        scope = Scope.model_validate(document.data)
    except ValidationError as error:
        raise ScenarioError(path, [*document.problems, *complaints(document, error, Scope)]) from None
    problems = [*document.problems, *_alike_beginnings(document, scope)]
    if problems:
        raise ScenarioError(path, problems)
    return scope


def _alike_beginnings(document: Document, scope: Scope) -> list[Problem]:
    """First own tokens that are alike by chance would be shared, and alike conversations not be alike."""
    model = ModelConfig()
    seen: dict[int, str] = {}
    problems = []
    for who in conversations(scope):
        token = _first_own(who, model)
        if token is None:
            continue
        if token in seen:
            line = document.line_of(("conversations", who.template, "name"))
            why = f"own tokens of {who.name} begin by chance like those of {seen[token]}"
            problems.append(Problem(line, f"{why}; rename the conversation"))
        seen[token] = who.name
    return problems


def _first_own(who: Conversation, model: ModelConfig) -> int | None:
    """The first token that a conversation shares with nobody: where its keys part from those of others."""
    for number, turn in enumerate(who.turns):
        added, at = who.added(number, model.vocab, model.seed), 0
        for passage in turn.prompt:
            if not passage.text:
                return added[at]
            at += passage.tokens
    return None
