"""Traces mutated at random: a clear message or a normal verdict each, never a traceback or a hang.

A few hundred by default; ``REPLAYLIFE_MUTATIONS=5000`` in the environment for more.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from replaylife.cli import main

from .support import recorded

MUTATIONS = int(os.environ.get("REPLAYLIFE_MUTATIONS", "300"))
SOURCES = (
    "eviction-pressure", "finish-donates-full-length", "retract-and-resume", "replayssm-off",
    "overlap-past-a-fold", "extra-buffer-multiturn", "branching",
)  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 7, 2**31, 2**63, 10**400, 1.5, "", "x", "turn1", "nan", "\x1b[31m", "\ud800",
    [], {}, [[]], [1, "2"], {"type": "Probe"},
    {"at": 0, "cut": 1, "put": []}, {"at": 10**9, "cut": -1, "put": [1]},
)  # fmt: skip


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) below a value."""
    found, stack = [], [value]
    while stack:
        holder = stack.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                stack.append(holder[key])
    return found


def _in_json(mutate: Callable[[random.Random, Any, Any], None]) -> Callable[[random.Random, bytes], bytes]:
    """Mutate one value in one line, the header more often than others, so that the rest stays well-formed."""

    def whole(source: random.Random, raw: bytes) -> bytes:
        lines = raw.splitlines()
        at = source.choice((0, *(source.randrange(len(lines)) for _ in range(12))))
        line = json.loads(lines[at])
        mutate(source, *source.choice(_places(line)))
        lines[at] = json.dumps(line).encode()
        return b"\n".join(lines) + b"\n"

    return whole


def _put_odd(source: random.Random, holder: Any, key: Any) -> None:
    holder[key] = source.choice(ODD)


def _nudge(source: random.Random, holder: Any, key: Any) -> None:
    value = holder[key]
    if type(value) is int:
        holder[key] = value + source.choice((-1, 1, 2, 100))
    elif isinstance(value, list) and value:
        source.shuffle(value)
    elif isinstance(value, str):
        holder[key] = value[::-1] or "y"
    else:
        holder[key] = source.choice((0, False, None))


def _remove(source: random.Random, holder: Any, key: Any) -> None:  # noqa: ARG001
    del holder[key]


def _double(source: random.Random, holder: Any, key: Any) -> None:  # noqa: ARG001
    if isinstance(holder, list):
        holder.insert(key, holder[key])
    else:
        holder[f"{key}s"] = holder[key]


def _lines(mutate: Callable[[random.Random, list[bytes]], Any]) -> Callable[[random.Random, bytes], bytes]:
    def whole(source: random.Random, raw: bytes) -> bytes:
        lines = raw.splitlines(keepends=True)
        mutate(source, lines)
        return b"".join(lines)

    return whole


def _swap(source: random.Random, lines: list[bytes]) -> None:
    a, b = source.randrange(len(lines)), source.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]


def _bytes(source: random.Random, raw: bytes) -> bytes:
    at = source.randrange(len(raw))
    return raw[:at] + bytes(source.randrange(256) for _ in range(source.randrange(4))) + raw[at + 1 :]


MUTATORS: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "odd value": _in_json(_put_odd),
    "nudged value": _in_json(_nudge),
    "missing value": _in_json(_remove),
    "doubled value": _in_json(_double),
    "bytes": _bytes,
    "cut": lambda source, raw: raw[: source.randrange(len(raw))],
    "line gone": _lines(lambda source, lines: lines.pop(source.randrange(len(lines)))),
    "line twice": _lines(
        lambda source, lines: lines.insert(source.randrange(len(lines)), source.choice(lines))
    ),
    "lines swapped": _lines(_swap),
}


def _mutate(source: random.Random) -> tuple[str, bytes]:
    kind = source.choice([*MUTATORS, *["odd value", "nudged value", "missing value"] * 2])
    raw = recorded(source.choice(SOURCES), source.choice((8, 64)))
    for _ in range(source.choice((1, 1, 1, 2, 5))):
        try:
            raw = MUTATORS[kind](source, raw)
        except ValueError:  # the line mutated before is no JSON any more
            break
    return kind, raw


def _outcome(raw: bytes, path: Path) -> str:
    """Check a trace with the command and say how that went; assert that it went well."""
    path.write_bytes(raw)
    began = time.monotonic()
    result = CliRunner().invoke(main, ["check", "--format", "json", str(path)])
    assert time.monotonic() - began < 10
    assert result.exit_code in (0, 1, 2), result.exception
    assert "internal error" not in result.output
    assert "Traceback" not in result.output
    last = json.loads(result.stdout.splitlines()[-1])
    assert last["exit_code"] == result.exit_code
    if last["type"] == "error":
        assert last["message"]
        assert len(result.stderr) < 500
        return "refused"
    if last["damage"] is not None:
        assert last["damage"]["line"] >= 2
        assert 5 < len(last["damage"]["message"]) < 300
        return "damaged, violated" if result.exit_code == 1 else "damaged"
    return "violated" if result.exit_code == 1 else "held"


def test_mutated_traces_get_a_clear_message_or_a_normal_verdict(tmp_path: Path) -> None:
    source = random.Random("traces")
    kinds: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    for _ in range(MUTATIONS):
        kind, raw = _mutate(source)
        kinds[kind] += 1
        outcomes[_outcome(raw, tmp_path / "t.jsonl")] += 1
    print(dict(outcomes))
    assert sum(outcomes.values()) == MUTATIONS >= 100
    assert set(kinds) == set(MUTATORS)
    floors = {"damaged": 0.3, "violated": 0.08, "damaged, violated": 0.05, "held": 0.02, "refused": 0.03}
    for outcome, floor in floors.items():
        assert outcomes[outcome] >= floor * MUTATIONS, outcomes


def test_an_unmutated_trace_holds(tmp_path: Path) -> None:
    assert _outcome(recorded("eviction-pressure", 8), tmp_path / "t.jsonl") == "held"
