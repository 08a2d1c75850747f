"""What is where in a trace: found by one look at each line, without putting any snapshot together."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from replaylife.lifecycle.trace.errors import Malformed
from replaylife.lifecycle.trace.lines import MAX_LINE_BYTES, VerdictLine
from replaylife.lifecycle.trace.reader import TraceReader, keyframe_step
from replaylife.lifecycle.trace.writer import LINE

_STEP = re.compile(rb'\{\s*"type"\s*:\s*"step"\s*,\s*"step"\s*:\s*(\d{1,15})\b')
_VIOLATIONS = b'"violations"'  # within a text its quotes would be escaped: this is always a key

Raw = dict[str, Any]


@dataclass(slots=True)
class Contents:
    """Which steps a trace has, which of them brought new violations, and how it ends.

    Steps ``first`` to ``last``; ``last`` is ``first - 1`` where there is none. ``violating`` and ``failed``
    (an expectation failed after the step) are ascending. ``damage`` says, in words, what cannot be read on.
    """

    first: int = 1
    last: int = 0
    violating: array[int] = field(default_factory=lambda: array("q"))
    failed: array[int] = field(default_factory=lambda: array("q"))
    verdict: VerdictLine | None = None
    damage: str = ""
    keyframes: list[tuple[int, int, int]] = field(default_factory=list)

    def __len__(self) -> int:
        return self.last - self.first + 1


def survey(reader: TraceReader) -> Contents:
    """Look at every line once. The reader then knows its keyframes; :meth:`TraceReader.seek` before reading.

    Damage that shows only when changes are applied is not found here: reading meets it. Raises
    :class:`TraceError` for a pipe.
    """
    found, seen = Contents(), False
    number = 1
    for offset, number, line in reader.raw_lines():
        step = keyframe_step(line)
        if step is not None:
            found.keyframes.append((step, offset, number))
            if not seen:
                found.first, found.last, seen = step + 1, step, True
            continue
        found.damage = _look_at(line, found)
        if found.damage:
            found.damage = f"line {number + 1}: {found.damage}"
            break
    if not found.damage and found.verdict is None:
        found.damage = f"line {number + 2}: the file ends without a verdict: killed, or cut"
    reader.know_keyframes(found.keyframes)
    return found


def _look_at(line: bytes, found: Contents) -> str:
    """Book one line; return what is wrong with it."""
    match = _STEP.match(line)
    raw = None
    if match is None or _VIOLATIONS in line:
        raw = parse(line)
        if raw is None:
            return "not a line of a trace"
    step = int(match.group(1)) if match is not None else raw.get("step") if raw else None
    kind = "step" if match is not None or raw is None else raw.get("type")
    if kind == "step":
        if not line.endswith(b"\n"):
            return "the file ends inside this line: it was cut"
        if step != found.last + 1:
            return f"step {step} after step {found.last}"
        found.last = step
        if raw is not None and raw.get("violations"):
            found.violating.append(step)
    elif kind == "expectation" and raw is not None:
        if raw.get("held") is False and (not found.failed or found.failed[-1] != found.last):
            found.failed.append(found.last)
    elif kind == "verdict":
        try:
            verdict = LINE.decode(raw)
        except Malformed as wrong:
            return str(wrong)
        found.verdict = verdict if isinstance(verdict, VerdictLine) else None
    return ""


def parse(line: bytes) -> Raw | None:
    """Return the object on a line, ``None`` where there is none."""
    if len(line) > MAX_LINE_BYTES:
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def matching_step(
    reader: TraceReader, contents: Contents, step: int, wanted: Callable[[Raw], bool], *, forward: bool
) -> int | None:
    """Return the nearest step after (or before) ``step`` whose line is ``wanted``, ``None`` if there is none.

    Reads on from the keyframe before ``step``, or keyframe by keyframe back; no snapshot is put together.
    """
    if forward:
        starts = [keyframe for keyframe in contents.keyframes if keyframe[0] <= step]
        for number, raw in _raw_steps(reader, starts[-1] if starts else None):
            if number > contents.last:
                return None
            if number > step and wanted(raw):
                return number
        return None
    until = step
    for start in reversed([keyframe for keyframe in contents.keyframes if keyframe[0] < step]):
        best = None
        for number, raw in _raw_steps(reader, start):
            if number >= until:
                break
            best = number if wanted(raw) else best
        if best is not None:
            return best
        until = start[0] + 1
    return None


def _raw_steps(reader: TraceReader, start: tuple[int, int, int] | None) -> Iterator[tuple[int, Raw]]:
    for _, _, line in reader.raw_lines(None if start is None else start[1:]):
        if keyframe_step(line) is not None:
            continue
        raw = parse(line)
        if raw is None:
            return
        if raw.get("type") == "step" and isinstance(raw.get("step"), int):
            yield raw["step"], raw
