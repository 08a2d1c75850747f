"""Traces for the tests of what shows them: recorded by the command, and read back as books."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from replaylife.lifecycle.trace.reader import TraceReader
from replaylife.view.book import Book

from .command import FAULT, run

HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m&\"'\u2028"


def record(path: Path, scenario: str = "multiturn", *options: str) -> Path:
    """Play a scenario on the ledger and return the trace that was written."""
    result = run(scenario, "--quiet", "--force", "--trace", str(path), *options)
    assert result.exit_code in (0, 1), result.output
    return path


def faulty(path: Path) -> Path:
    """The worked example with the full-length donation seeded: 47 steps, violations in 24, 26 and 47."""
    return record(path, "multiturn", "--fault", FAULT)


@contextmanager
def book_of(path: Path) -> Iterator[Book]:
    with TraceReader(path) as reader:
        yield Book(reader)


def edited(path: Path, edit: Callable[[dict[str, Any]], None]) -> Path:
    """Write a trace anew, each line changed in place."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        value = json.loads(line)
        edit(value)
        lines.append(json.dumps(value, separators=(",", ":")))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def renamed(path: Path, old: str, new: str) -> Path:
    """Write a trace anew with one text, wherever it stands alone, replaced by another."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walk(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [walk(inner) for inner in value]
        return new if value == old else value

    def edit(line: dict[str, Any]) -> None:
        line.update(walk(line))

    return edited(path, edit)
