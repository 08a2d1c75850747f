"""A trace as a book: any step by its number, read around it, and the steps worth turning to."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.invariants import Checker
from replaylife.lifecycle.scenario.player import Failed, Held, Played
from replaylife.lifecycle.snapshot import Violation
from replaylife.lifecycle.trace.causes import Causes
from replaylife.lifecycle.trace.chain import Chain
from replaylife.lifecycle.trace.contents import Contents, matching_step, survey
from replaylife.lifecycle.trace.errors import TraceDamaged
from replaylife.lifecycle.trace.lines import Expectation, Header
from replaylife.lifecycle.trace.reader import RecordedStep, TraceReader
from replaylife.view.heading import Run
from replaylife.view.look import clean
from replaylife.view.subject import Subject

CHUNK = 64  # steps read together; a writer of ours leaves a keyframe after as many
KEPT = 24  # chunks kept, so that turning pages back and forth reads nothing
WHOLE = 4_000  # steps: the causes of a trace up to this long are followed from its first step
BACK, AHEAD = 1_024, 256  # steps, at least, before and after a violation in which its causes are sought


@dataclass(frozen=True, slots=True)
class Page:
    """One step, everything that is broken after it, and the expectations that were judged there."""

    played: Played
    judged: tuple[Failed | Held, ...] = ()

    @property
    def step(self) -> int:
        """The number of the step, from 1."""
        return self.played.transition.step


class Source(Protocol):
    """Where a screen takes its pages from: a trace, or a run that is still going on."""

    @property
    def first(self) -> int:
        """The first step there is."""
        ...

    @property
    def last(self) -> int:
        """The last step there is by now."""
        ...

    @property
    def violating(self) -> Sequence[int]:
        """The steps that brought new violations, ascending."""
        ...

    @property
    def note(self) -> str:
        """What a reader must know: that a trace is cut, say. Empty where there is nothing."""
        ...

    @property
    def going_on(self) -> bool:
        """Whether more steps may come."""
        ...

    def page(self, step: int) -> Page:
        """Return a step's page. Raises ``LookupError`` where there is none that can be read."""
        ...

    def change(self, subject: Subject, step: int, *, forward: bool) -> int | None:
        """Return the nearest step after (or before) ``step`` that changes ``subject``."""
        ...

    def find(self, words: str, step: int, *, forward: bool) -> int | None:
        """Return the nearest step after (or before) ``step`` whose action or events have ``words``."""
        ...

    def chain(self, step: int, violation: Violation) -> Chain | None:
        """Return the causes of a violation that was new in ``step``, as far as they can be told."""
        ...


def nearest_violation(source: Source, step: int, *, forward: bool) -> int | None:
    """Return the next (or previous) step with new violations, seen from ``step``."""
    steps = source.violating
    if forward:
        at = bisect_right(steps, step)
        return steps[at] if at < len(steps) else None
    at = bisect_left(steps, step)
    return steps[at - 1] if at else None


class Book:
    """A trace file, opened; one look at each line tells where everything is, pages are read when asked for.

    Holds :data:`KEPT` chunks of :data:`CHUNK` steps, however long the trace. What is broken after a step is
    derived from the snapshot, what is new in it is as recorded. Raises :class:`TraceError` for a pipe.
    """

    going_on = False

    def __init__(self, reader: TraceReader) -> None:
        self.reader = reader
        self.contents: Contents = survey(reader)
        self._checker = Checker(reader.header.capabilities)
        self._chunks: OrderedDict[int, dict[int, Page]] = OrderedDict()
        self._damage = self.contents.damage
        self._causes: tuple[range, Causes] = (range(0), Causes())

    @property
    def header(self) -> Header:
        """What was run, on what."""
        return self.reader.header

    @property
    def num_invariants(self) -> int:
        """How many invariants watch such an engine."""
        return len(self._checker.invariants)

    @property
    def first(self) -> int:
        """The first step recorded."""
        return self.contents.first

    @property
    def last(self) -> int:
        """The last step recorded, as far as the trace can be read."""
        return self.contents.last

    @property
    def violating(self) -> Sequence[int]:
        """The steps that brought new violations, as recorded."""
        return self.contents.violating

    @property
    def note(self) -> str:
        """What cannot be read, if anything."""
        return clean(f"{self.reader.path}, {self._damage}") if self._damage else ""

    def page(self, step: int) -> Page:
        """Return a step's page. Raises ``LookupError`` for one that is not there, or behind damage."""
        if not self.first <= step <= self.last:
            raise LookupError(f"step {step}: the trace has steps {self.first}..{self.last}")
        chunk = (step - self.first) // CHUNK
        pages = self._chunks.get(chunk)
        if pages is None:
            pages = self._chunks[chunk] = self._read(self.first + chunk * CHUNK)
            while len(self._chunks) > KEPT:
                self._chunks.popitem(last=False)
        self._chunks.move_to_end(chunk)
        if step not in pages:
            raise LookupError(f"step {step} cannot be read: {self._damage}")
        return pages[step]

    def pages(self, first: int, last: int) -> list[Page]:
        """Return the pages of the steps that can be read, from ``first`` to ``last``."""
        found = []
        for step in range(max(first, self.first), min(last, self.last) + 1):
            try:
                found.append(self.page(step))
            except LookupError:
                break
        return found

    def change(self, subject: Subject, step: int, *, forward: bool) -> int | None:
        """Return the nearest step that changes ``subject``, read off the lines."""
        return self._matching(step, subject.changes_in_line, forward=forward)

    def find(self, words: str, step: int, *, forward: bool) -> int | None:
        """Return the nearest step whose action or events have ``words``, read off the lines."""
        wanted = words.casefold()
        return self._matching(step, lambda raw: wanted in line_words(raw).casefold(), forward=forward)

    def chain(self, step: int, violation: Violation) -> Chain | None:
        """Return the causes of a violation, followed through the steps around it (all of a short trace)."""
        known, causes = self._causes
        if step not in known:
            whole = len(self.contents) <= WHOLE
            first = self.first if whole else max(self.first, step - BACK)
            last = self.last if whole else min(self.last, step + 2 * AHEAD)
            causes = self.causes(first, last)
            self._causes = (range(first, last + 1) if whole else range(step, step + AHEAD + 1), causes)
        return causes.of.get((step, violation.invariant, violation.subject))

    def causes(self, first: int, last: int, progress: Callable[[int], None] = lambda _: None) -> Causes:
        """Follow the causes of what is new in the steps ``first`` to ``last``, as far as they can be read.

        ``progress`` is told the bytes read, after each entry.
        """
        causes = Causes()
        try:
            self.reader.seek(first)
            for entry in self.reader.entries():
                progress(self.reader.bytes_read)
                if isinstance(entry, RecordedStep):
                    causes.follow(entry.transition, entry.violations)
                    if entry.transition.step >= last:
                        break
        except (TraceDamaged, ValueError):
            pass  # what could be read counts; reading the page tells of the damage
        return causes

    def _matching(self, step: int, wanted: Callable[[dict[str, Any]], bool], *, forward: bool) -> int | None:
        return matching_step(self.reader, self.contents, step, wanted, forward=forward)

    def _read(self, start: int) -> dict[int, Page]:
        pages: dict[int, Page] = {}
        end = min(start + CHUNK - 1, self.last)
        try:
            self.reader.seek(start)
            for entry in self.reader.entries():
                if isinstance(entry, RecordedStep):
                    if entry.transition.step > end:
                        break
                    pages[entry.transition.step] = self._page(entry)
                elif isinstance(entry, Expectation) and pages:
                    step = max(pages)
                    judged = Held(entry.line) if entry.held else Failed(entry.line, entry.message)
                    pages[step] = Page(pages[step].played, (*pages[step].judged, judged))
                if self.reader.verdict is not None:
                    break
        except TraceDamaged as damage:
            if damage.line and len(pages) < end - start + 1:
                self._damage = f"line {damage.line}: {damage.message}"
        except ValueError as error:
            self._damage = str(error)
        return pages

    def _page(self, entry: RecordedStep) -> Page:
        t = entry.transition
        return Page(Played(entry.line or 0, t, self._checker.check(t), entry.violations))


def line_words(raw: Any) -> str:
    """Return all words of a step's action and events, names of fields left out."""
    found: list[str] = []
    stack: list[Any] = [raw.get("events"), raw.get("action")]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend(reversed(value.values()))
        elif isinstance(value, str):
            found.append(value)
        elif isinstance(value, list):
            stack.extend(entry for entry in value if not isinstance(entry, int | float))
    return " ".join(found)


def run_of(header: Header) -> Run:
    """Return what a trace was recorded of; the configuration is a blank one where its engine has none."""
    return Run(
        name=clean(header.scenario),
        title=clean(header.title or header.scenario),
        path=clean(header.path),
        config=header.config or EngineConfig(),
        faults=tuple(clean(name) for name in header.faults),
        command=tuple(clean(word) for word in header.command),
    )
