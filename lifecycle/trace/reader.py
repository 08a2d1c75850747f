"""Reads a trace line by line: bounded memory, jumps by keyframes, and a clear word about damage."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NoReturn, Self, TypeAlias

from replaylife.lifecycle.snapshot import Snapshot, Transition, Violation
from replaylife.lifecycle.trace.changes import apply_changes
from replaylife.lifecycle.trace.errors import Malformed, TraceDamaged, TraceError, show
from replaylife.lifecycle.trace.lines import (
    FORMAT,
    MAX_LINE_BYTES,
    VERSION,
    Expectation,
    Header,
    Keyframe,
    Step,
    VerdictLine,
)
from replaylife.lifecycle.trace.structure import flaws, flaws_of_events
from replaylife.lifecycle.trace.writer import LINE

_KEYFRAME = re.compile(rb'\{\s*"type"\s*:\s*"keyframe"\s*,\s*"step"\s*:\s*(\d{1,15})\b')


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step as recorded: the trace's line number, the transition, the scenario's line, new violations."""

    number: int
    transition: Transition
    line: int | None
    violations: tuple[Violation, ...]


Entry: TypeAlias = RecordedStep | Expectation | VerdictLine


class TraceReader:
    """Reads the trace at ``path``; holds one snapshot and one line, however long the file is.

    Iterate over it for transitions (``changed`` unset, so that whoever checks looks at everything), or over
    :meth:`entries` for all that was recorded; both go on from where the last one stopped, and :meth:`seek`
    jumps. Raises :class:`TraceError` for what is no trace or of a newer version; while reading,
    :class:`TraceDamaged` after the last good entry, also where the verdict is missing. ``header`` is the
    first line, ``verdict`` the last one once it has been read. Nothing in the file is evaluated or opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.verdict: VerdictLine | None = None
        self._keyframes: list[tuple[int, int, int]] | None = None  # step, offset, line before
        self._number = 0
        try:
            if path.is_dir():
                raise TraceError(self.path, 0, "is a directory, need a trace file")
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise TraceError(self.path, 0, f"cannot be read: {error.strerror}") from None
        try:
            self.size = path.stat().st_size
            self.header = self._read_header()
            self._start = (self._file.tell() if self._file.seekable() else 0, self._number)
        except BaseException:
            self._file.close()
            raise
        self._snapshot: Snapshot | None = None
        self._step = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[Transition]:
        return (entry.transition for entry in self.entries() if isinstance(entry, RecordedStep))

    @property
    def line_number(self) -> int:
        """The line read last, from 1."""
        return self._number

    @property
    def bytes_read(self) -> int:
        """How far the reading is, of ``size`` bytes; for a progress bar."""
        return self._file.tell() if self._file.seekable() else 0

    def entries(self) -> Iterator[Entry]:
        """Yield what was recorded from here on, in order."""
        while self.verdict is None:
            entry = self._next()
            if entry is not None:
                yield entry
        if self._readline():
            self._damaged("a line after the verdict")

    def seek(self, step: int) -> None:
        """Go to where the next transition is ``step``, from the nearest keyframe before it.

        Reads the file once to find the keyframes. Raises ``ValueError`` for a step that the trace does not
        have, :class:`TraceDamaged` for one that lies behind the damage.
        """
        if step < 1:
            raise ValueError(f"step {step}: steps count from 1")
        if self._keyframes is None:
            self._keyframes = list(self._find_keyframes())
        usable = [keyframe for keyframe in self._keyframes if keyframe[0] < step]
        if not usable:
            raise ValueError(f"step {step}: the trace has no keyframe before it")
        _, offset, self._number = max(usable)
        self._file.seek(offset)
        self._snapshot, self.verdict = None, None
        self._next()
        while self._step < step - 1:
            self._go_on(step)
        at = self._file.tell(), self._number, self._snapshot
        while self._step < step:  # it must be there
            self._go_on(step)
        offset, self._number, self._snapshot = at
        self._step = step - 1
        self._file.seek(offset)

    def _go_on(self, step: int) -> None:
        self._next()
        if self.verdict is not None:
            raise ValueError(f"step {step}: the trace ends with step {self._step}")

    # -- lines ---------------------------------------------------------------------------------------

    def _damaged(self, message: str, line: int | None = None) -> NoReturn:
        raise TraceDamaged(self.path, self._number if line is None else line, message)

    def _readline(self) -> bytes:
        try:
            line = self._file.readline(MAX_LINE_BYTES + 1)
        except OSError as error:
            self._damaged(f"cannot be read on: {error.strerror}", self._number + 1)
        if line:
            self._number += 1
        if len(line) > MAX_LINE_BYTES:
            self._damaged(f"the line is longer than {MAX_LINE_BYTES:,} bytes; is this a trace?")
        return line

    def _parse(self, line: bytes) -> dict[str, Any]:
        """Return the object on a line. Damage is told apart: cut, not text, not JSON, not an object."""
        half = "" if line.endswith(b"\n") else " (the file ends here, without a newline: it was cut)"
        try:
            value = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
        except UnicodeDecodeError:
            self._damaged(f"not UTF-8 text{half}")
        except RecursionError:
            self._damaged("nested far deeper than any line of a trace")
        except ValueError as error:
            reason = getattr(error, "msg", str(error)).partition(";")[0]
            self._damaged(f"not a line of JSON: {reason}{half}" if line.strip() else "an empty line")
        if type(value) is not dict or type(value.get("type")) is not str:
            self._damaged(f'found {show(value)}, need an object with "type"')
        return value

    def _read_header(self) -> Header:
        line = self._readline()
        if not line:
            raise TraceError(self.path, 0, "is empty, need a trace (replaylife run SCENARIO --trace FILE)")
        try:
            value = self._parse(line)
        except TraceDamaged as damage:
            raise TraceError(self.path, 1, f"not a trace: {damage.message}") from None
        if value["type"] != "header" or value.get("format") != FORMAT:
            raise TraceError(self.path, 1, f'not a trace: need a header of format "{FORMAT}"')
        version = value.get("version")
        if type(version) is int and version > VERSION:
            raise TraceError(
                self.path,
                1,
                f"format version {show(version)}, written by {show(value.get('tool'))}; "
                f"this replaylife reads versions up to {VERSION}: upgrade it",
            )
        try:
            header = LINE.decode(value)
        except Malformed as wrong:
            raise TraceError(self.path, 1, f"not a trace that can be read: {wrong}") from None
        assert isinstance(header, Header)
        if version != VERSION or header.keyframe_every < 1:
            raise TraceError(self.path, 1, "need version 1 and keyframe_every of at least 1")
        return header

    # -- entries -------------------------------------------------------------------------------------

    def _next(self) -> Entry | None:
        """Read one line; return its entry, ``None`` for a keyframe."""
        raw = self._readline()
        if not raw:
            self._damaged(self._unfinished(), self._number + 1)
        value = self._parse(raw)
        try:
            line = LINE.decode(value)
            if isinstance(line, Step):
                return self._apply(line)
        except Malformed as wrong:
            self._damaged(str(wrong))
        if isinstance(line, Header):
            self._damaged("a second header")
        if isinstance(line, Keyframe):
            self._meet(line)
            return None
        if isinstance(line, VerdictLine):
            self.verdict = line
        assert isinstance(line, Expectation | VerdictLine)
        return line

    def _unfinished(self) -> str:
        after = f"after step {self._step}" if self._snapshot is not None else "before the first step"
        return f"the file ends {after}, without a verdict: its run was killed, or the file was cut"

    def _apply(self, line: Step) -> RecordedStep:
        before = self._snapshot
        if before is None:
            self._damaged("a step before the first keyframe")
        if line.step != self._step + 1:
            self._damaged(
                f"step {show(line.step)} after step {self._step}: steps are missing or out of order"
            )
        try:
            after = apply_changes(before, line.changes)
        except Malformed as wrong:
            raise wrong.inside("changes") from None
        after = replace(after, measurements=line.measurements)
        self._require_sound(after)
        self._require(flaws_of_events(line.events, after))
        if len(after.slots) != len(before.slots):
            self._damaged(f"{len(after.slots)} slots, {len(before.slots)} before: a pool keeps its size")
        self._snapshot, self._step = after, line.step
        transition = Transition(line.step, before, line.action, line.events, after)
        return RecordedStep(self._number, transition, line.line, line.violations)

    def _meet(self, line: Keyframe) -> None:
        if line.step < 0:
            self._damaged(f"keyframe of step {show(line.step)}")
        if self._snapshot is None:
            self._require_sound(line.snapshot)
            self._snapshot, self._step = line.snapshot, line.step
            return
        if line.step != self._step:
            self._damaged(f"keyframe of step {show(line.step)} after step {self._step}")
        if line.snapshot != replace(self._snapshot, measurements=line.snapshot.measurements):
            self._damaged(f"keyframe of step {line.step} is not what the changes before it add up to")

    def _require_sound(self, snapshot: Snapshot) -> None:
        self._require(flaws(snapshot))

    def _require(self, found: Iterable[str]) -> None:
        flaw = next(iter(found), None)
        if flaw is not None:
            self._damaged(flaw)

    def raw_lines(self, start: tuple[int, int] | None = None) -> Iterator[tuple[int, int, bytes]]:
        """Yield (offset, lines before it, the line), none looked into; from the header's end, or ``start``.

        A line has at most ``MAX_LINE_BYTES`` + 1 bytes: a longer one comes in pieces. Leaves the reading
        position anywhere: :meth:`seek` afterwards. Raises :class:`TraceError` for what cannot be jumped in.
        """
        if not self._file.seekable():
            raise TraceError(self.path, 0, "is a pipe, need a file: its steps are jumped to")
        offset, number = start or self._start
        self._file.seek(offset)
        while line := self._file.readline(MAX_LINE_BYTES + 1):
            yield offset, number, line
            offset, number = offset + len(line), number + 1

    def know_keyframes(self, keyframes: Iterable[tuple[int, int, int]]) -> None:
        """Take (step, offset, lines before) of all keyframes, found by who has read the file already."""
        self._keyframes = list(keyframes)

    def _find_keyframes(self) -> Iterator[tuple[int, int, int]]:
        for offset, number, line in self.raw_lines():
            step = keyframe_step(line)
            if step is not None:
                yield step, offset, number


def keyframe_step(line: bytes) -> int | None:
    """Return the step of a line that is a keyframe, ``None`` for any other."""
    found = _KEYFRAME.match(line)
    return None if found is None else int(found.group(1))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f'{name} must be written as text ("nan", "inf", "-inf")')
