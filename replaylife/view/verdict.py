"""What a run came to, in one panel; and several runs in one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rich import box
from rich.console import RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from replaylife.lifecycle.scenario.player import Verdict
from replaylife.lifecycle.snapshot import Measurement, Violation
from replaylife.view.heading import Run, engine_words
from replaylife.view.look import BAD, BOLD, DIM, GOOD, NEUTRAL, Look, count, hang, joined

Ending: TypeAlias = Literal["complete", "stopped", "interrupted"]
MEANING = {
    0: "every expectation and every invariant held",
    1: "an invariant was violated or an expectation failed",
    2: "the command could not do its work",
    130: "interrupted",
}


@dataclass(slots=True)
class Tally:
    """What a run has done so far, beside the verdict: counted as the outcomes come."""

    lines: dict[int, int] = field(default_factory=dict)
    measured: int = 0
    worst: float = 0.0
    judged: set[int] = field(default_factory=set)

    def count(self, step: int, line: int, measurements: Iterable[Measurement]) -> None:
        """Book one step: the scenario line it came from and what was measured after it."""
        self.lines[step] = line
        for measurement in measurements:
            self.measured += 1
            if measurement.tolerance and not measurement.exceeded:
                self.worst = max(self.worst, measurement.error / measurement.tolerance)


@dataclass(frozen=True, slots=True)
class Summary:
    """A run, its verdict, and what it took. ``launches`` counts kernels by operation and mode."""

    run: Run
    verdict: Verdict
    tally: Tally
    num_invariants: int
    launches: Mapping[str, int]
    ending: Ending = "complete"

    @property
    def exit_code(self) -> int:
        """The exit code this run alone would give."""
        if self.ending == "interrupted":
            return 130
        return 0 if self.verdict.held else 1


def verdict_panel(summary: Summary, look: Look) -> RenderableType:
    """Return the panel that ends a run."""
    sign, style = _sign(summary, look)
    return Panel(
        _facts(summary, look),
        title=Text(f"{sign} {summary.run.name}: {headline(summary)}", style),
        title_align="left",
        border_style=style,
        box=box.ROUNDED,
        width=look.width,
    )


def _sign(summary: Summary, look: Look) -> tuple[str, str]:
    if not summary.verdict.held:
        return look.signs.bad, BAD
    return (look.signs.good, GOOD) if summary.ending == "complete" else (look.signs.dot, NEUTRAL)


def headline(summary: Summary) -> str:
    """Say in half a sentence what the run came to."""
    verdict = summary.verdict
    ended = {"complete": "", "stopped": " (stopped before the end)", "interrupted": " (interrupted)"}
    return _found(verdict, complete=summary.ending == "complete") + ended[summary.ending]


def _found(verdict: Verdict, *, complete: bool) -> str:
    unexpected, every = ({v.invariant for _, v in some} for some in (verdict.unexpected, verdict.violations))
    parts = [f"{count(len(unexpected), 'invariant')} violated"] if unexpected else []
    if verdict.failures:
        parts.append(f"{count(len(verdict.failures), 'expectation')} failed")
    if parts:
        return ", ".join(parts)
    if every:
        return f"{count(len(every), 'invariant')} violated, as expected"
    return "everything held" if complete else "nothing broken so far"


def _facts(summary: Summary, look: Look) -> Table:
    run, verdict = summary.run, summary.verdict
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style=DIM, no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("engine", engine_words(run))
    if run.faults:
        table.add_row("fault", ", ".join(run.faults))
    table.add_row("played", _played(summary))
    if summary.tally.measured:
        table.add_row("measured", _measured(summary.tally))
    if summary.launches:
        table.add_row("kernels", _kernels(summary.launches, look))
    if verdict.violations:
        table.add_row("violated", joined(_violated(verdict), "\n"))
    if verdict.failures:
        lines = [Text(f"{run.path}:{failed.line}: {failed.message}") for failed in verdict.failures]
        table.add_row("failed", joined(lines, "\n"))
    table.add_row("exit code", f"{summary.exit_code}: {_meaning(summary)}")
    return table


def _meaning(summary: Summary) -> str:
    if summary.verdict.held and summary.verdict.violations:
        return "every expectation held, that of the violations too"
    if summary.ending == "stopped" and summary.verdict.held:
        return "stopped before the end, nothing broken so far"
    return MEANING[summary.exit_code]


def _played(summary: Summary) -> str:
    steps, number = summary.verdict.steps, summary.num_invariants
    checks = f"{count(number, 'invariant')} after each: {count(steps * number, 'check')}"
    expected = count(len(summary.tally.judged), "expectation")
    return f"{count(steps, 'step')}, {checks}; {expected}"


def _measured(tally: Tally) -> str:
    text = f"{count(tally.measured, 'comparison')} of tensors"
    return f"{text}; the largest error within tolerance is {tally.worst:.2g} of it" if tally.worst else text


def _kernels(launches: Mapping[str, int], look: Look) -> str:
    by_mode: dict[str, list[str]] = {}
    for name, times in sorted(launches.items()):
        operation, _, mode = name.rstrip("]").partition("[")
        by_mode.setdefault(mode, []).append(f"{operation} {look.signs.times}{times:,}")
    return "; ".join(f"{mode}: {', '.join(ran)}" for mode, ran in by_mode.items())


def _violated(verdict: Verdict) -> list[Text]:
    """One paragraph per invariant: its first step, subject and both numbers, and how many came after."""
    first: dict[str, tuple[int, Violation]] = {}
    times: dict[str, int] = {}
    for step, violation in verdict.violations:
        first.setdefault(violation.invariant, (step, violation))
        times[violation.invariant] = times.get(violation.invariant, 0) + 1
    unexpected = {violation.invariant for _, violation in verdict.unexpected}
    lines = []
    for invariant, (step, violation) in first.items():
        notes = [f"and {times[invariant] - 1} more"] if times[invariant] > 1 else []
        notes += [] if invariant in unexpected else ["expected"]
        remark = f" ({', '.join(notes)})" if notes else ""
        numbers = f" from step {step}, {violation.subject}: {violation.found}, expected {violation.expected}"
        lines.append(Text.assemble((invariant, BOLD), f"{numbers}{remark}"))
    return lines


def summary_lines(results: Sequence[tuple[str, int, str]], look: Look) -> Iterator[Text]:
    """Yield a line for each of several runs: name and headline."""
    width = min(max(len(name) for name, _, _ in results), look.width // 2)
    for name, code, words in results:
        sign, style = (look.signs.good, GOOD) if code == 0 else (look.signs.bad, BAD)
        line = Text.assemble((f"{sign} {name.ljust(width)}", style), f"  {words}")
        yield from hang(line, 0, look.width, deeper=4)
