"""Judges a recorded trace: derives its verdict again, and compares that with the one it carries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from replaylife.lifecycle.snapshot import Violation
from replaylife.lifecycle.trace.checker import TransitionChecker
from replaylife.lifecycle.trace.errors import TraceDamaged
from replaylife.lifecycle.trace.lines import Expectation, Header, VerdictLine
from replaylife.lifecycle.trace.reader import RecordedStep, TraceReader
from replaylife.lifecycle.trace.succession import FOLLOWS

MAX_KEPT = 1_000  # violations and differences kept in full; more are counted


@dataclass(frozen=True, slots=True)
class Found:
    """A new violation: in which step, and on which line of the trace that step stands."""

    step: int
    number: int
    violation: Violation


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the verdict recorded in the trace and the one derived from it differ."""

    number: int
    message: str


@dataclass(slots=True)
class Judgement:
    """What a trace came to.

    ``violations`` are derived from the snapshots (those of tensors from the recorded measurements) and
    include steps that do not follow; ``differences`` are between that and what the trace recorded;
    ``failures`` the expectations that failed, as recorded. The lists keep at most :data:`MAX_KEPT` entries,
    the counts have all.
    """

    header: Header
    steps: int = 0
    num_invariants: int = 0
    measured: int = 0
    held_expectations: int = 0
    num_violations: int = 0
    num_differences: int = 0
    num_failures: int = 0
    violations: list[Found] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    failures: list[Expectation] = field(default_factory=list)
    verdict: VerdictLine | None = None
    damage: TraceDamaged | None = None

    @property
    def exit_code(self) -> int:
        """1 if anything is wrong with the run, else 2 if the trace could not be read to its end, else 0."""
        if self.num_violations or self.num_differences or self.num_failures:
            return 1
        return 0 if self.damage is None else 2

    def violated(self, step: int, number: int, violation: Violation) -> None:
        """Book a violation."""
        self.num_violations += 1
        if len(self.violations) < MAX_KEPT:
            self.violations.append(Found(step, number, violation))

    def differs(self, number: int, message: str) -> None:
        """Book a difference."""
        self.num_differences += 1
        if len(self.differences) < MAX_KEPT:
            self.differences.append(Difference(number, message))


def judge(reader: TraceReader, progress: Callable[[int], None] = lambda _: None) -> Judgement:
    """Read a trace to its end, or up to the damage, and judge it.

    ``progress`` is told the bytes read, after each entry.
    """
    judgement = Judgement(reader.header)
    checker = TransitionChecker(reader.header.capabilities)
    judgement.num_invariants = checker.num_invariants
    recorded = 0
    try:
        for entry in reader.entries():
            match entry:
                case RecordedStep():
                    _step(judgement, checker, entry)
                    recorded += len(entry.violations)
                case Expectation(held=held):
                    _expectation(judgement, entry, held=held)
                case VerdictLine():
                    judgement.verdict = entry
                    _verdict(judgement, entry, reader.line_number, recorded)
            progress(reader.bytes_read)
    except TraceDamaged as damage:
        judgement.damage = damage
    return judgement


def _step(judgement: Judgement, checker: TransitionChecker, entry: RecordedStep) -> None:
    t = entry.transition
    judgement.steps += 1
    judgement.measured += len(t.after.measurements)
    found = checker.check(t)
    for violation in found:
        judgement.violated(t.step, entry.number, violation)
    derived, recorded = (_grouped(side) for side in (found, entry.violations))
    for key in derived.keys() | recorded.keys():
        ours, theirs = derived.get(key, []), recorded.get(key, [])
        if ours == theirs:
            continue
        what = f"step {t.step}: {key[0]} of {key[1]}"
        if not theirs:
            message = f"{what} is broken, and the trace does not say so"
        elif not ours:
            message = f"{what} is recorded as broken, and the snapshots do not show it"
        else:
            said, shown = "; ".join(theirs), "; ".join(ours)
            message = f"{what}: recorded {said}, and the snapshots show {shown}"
        judgement.differs(entry.number, message)


def _grouped(violations: Iterable[Violation]) -> dict[tuple[str, str], list[str]]:
    """The numbers of each (invariant, subject); no recorded verdict knows of steps that do not follow."""
    found: dict[tuple[str, str], list[str]] = {}
    for violation in violations:
        if violation.invariant != FOLLOWS:
            numbers = f"{violation.found}, expected {violation.expected}"
            found.setdefault((violation.invariant, violation.subject), []).append(numbers)
    return found


def _expectation(judgement: Judgement, entry: Expectation, *, held: bool) -> None:
    if held:
        judgement.held_expectations += 1
        return
    judgement.num_failures += 1
    if len(judgement.failures) < MAX_KEPT:
        judgement.failures.append(entry)


def _verdict(judgement: Judgement, entry: VerdictLine, number: int, recorded: int) -> None:
    """Compare the last line with what the lines before it come to."""
    counted = {
        "steps": (entry.steps, judgement.steps),
        "violations": (entry.violations, recorded),
        "failures": (entry.failures, judgement.num_failures),
    }
    for name, (said, found) in counted.items():
        if said != found:
            judgement.differs(number, f"the verdict counts {said} {name}, the lines before it have {found}")
    if entry.held != (not entry.unexpected and not entry.failures):
        word = "held" if entry.held else "not held"
        judgement.differs(
            number,
            f"the verdict is {word}, with {entry.unexpected} unexpected violations and "
            f"{entry.failures} failures",
        )
