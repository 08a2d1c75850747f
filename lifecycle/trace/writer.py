"""Writes a trace: one line per step, each flushed, so that a killed run leaves what it did."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from replaylife.lifecycle.snapshot import Snapshot, Transition, Violation
from replaylife.lifecycle.trace.changes import encode_changes
from replaylife.lifecycle.trace.codec import tagged
from replaylife.lifecycle.trace.errors import TraceExists
from replaylife.lifecycle.trace.lines import (
    KINDS,
    Ending,
    Expectation,
    Header,
    Keyframe,
    Line,
    Step,
    VerdictLine,
)

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.player import Outcome, Verdict

LINE = tagged(KINDS)


def encode_line(line: Line) -> bytes:
    """Return one line of a trace, its newline included."""
    text = json.dumps(LINE.encode(line), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace") + b"\n"


def require_writable(path: Path, *, force: bool = False) -> None:
    """Raise :class:`TraceExists` for a file that holds something and is not to be replaced."""
    if path.is_dir():
        raise TraceExists(str(path), 0, "is a directory, need a file")
    if path.is_file() and path.stat().st_size and not force:
        raise TraceExists(str(path), 0, "exists and is not empty; choose another name, or --force")


class TraceWriter:
    """Writes the trace of one run to ``path``; use it as a context manager.

    A file that is there already and not empty is replaced only with ``force``: :class:`TraceExists`
    otherwise, ``OSError`` where the file cannot be written. Nothing written is ever changed again. For the
    reference engine :meth:`tell` takes a player's outcomes; for any other :meth:`step` takes transitions.
    """

    def __init__(self, path: Path, header: Header, *, force: bool = False) -> None:
        require_writable(path, force=force)
        self.header = header
        self._file: IO[bytes] = path.open("wb" if path.exists() else "xb")
        self._before: Snapshot | None = None
        self._seen: set[tuple[str, str]] = set()
        self._steps = 0
        self._write(header)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Without :meth:`end` or :meth:`finish` before, the trace counts as cut."""
        self._file.close()

    def tell(self, outcome: Outcome) -> None:
        """Write one outcome of a player."""
        from replaylife.lifecycle.scenario.player import Failed, Played

        if isinstance(outcome, Played):
            self.step(outcome.transition, outcome.fresh, line=outcome.line)
        else:
            message = outcome.message if isinstance(outcome, Failed) else ""
            self._write(Expectation(not isinstance(outcome, Failed), outcome.line, message))

    def step(
        self, transition: Transition, violations: Iterable[Violation] = (), *, line: int | None = None
    ) -> None:
        """Write one transition, with the violations that had not occurred before.

        Raises ``ValueError`` if its step does not follow the one written before.
        """
        if self._before is None:
            self._steps = transition.step - 1
            self._write(Keyframe(self._steps, _unmeasured(transition.before)))
            self._before = transition.before
        if transition.step != self._steps + 1:
            raise ValueError(
                f"step: {transition.step}, need {self._steps + 1}, the one after the last written"
            )
        fresh = tuple(violations)
        self._write(
            Step(
                step=transition.step,
                line=line,
                action=transition.action,
                events=transition.events,
                changes=encode_changes(self._before, transition.after),
                measurements=transition.after.measurements,
                violations=fresh,
            )
        )
        self._seen |= {(violation.invariant, violation.subject) for violation in fresh}
        self._before, self._steps = transition.after, transition.step
        if self._steps % self.header.keyframe_every == 0:
            self._write(Keyframe(self._steps, _unmeasured(transition.after)))

    def end(self, verdict: Verdict, ending: Ending = "complete") -> None:
        """Write the verdict of a player; nothing can be written after it."""
        self.finish(
            VerdictLine(
                held=verdict.held,
                ending=ending,
                steps=verdict.steps,
                violations=len(verdict.violations),
                unexpected=len(verdict.unexpected),
                failures=len(verdict.failures),
                caught_at=verdict.caught_at,
            )
        )

    def finish(self, verdict: VerdictLine | None = None) -> None:
        """Write the last line; without ``verdict`` one that counts what was written."""
        found = len(self._seen)
        self._write(
            verdict or VerdictLine(not found, "complete", self._steps, found, unexpected=found, failures=0)
        )

    def _write(self, line: Line) -> None:
        self._file.write(encode_line(line))
        self._file.flush()


def _unmeasured(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, measurements=()) if snapshot.measurements else snapshot
