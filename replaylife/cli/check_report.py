"""Shows judged traces: to people, to programs, to GitHub workflows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import groupby
from typing import Any, Protocol

import click
from rich import box
from rich.console import RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from replaylife.cli.console import text_console
from replaylife.cli.errors import CannotWork
from replaylife.lifecycle.snapshot import Violation
from replaylife.lifecycle.trace.checker import from_tensors
from replaylife.lifecycle.trace.judge import Found, Judgement
from replaylife.lifecycle.trace.succession import FOLLOWS
from replaylife.view.look import BAD, DIM, GOOD, NEUTRAL, clean, count, hang, joined, look_of
from replaylife.view.violations import violation_panel

MAX_PANELS = 4
MEANING = {
    0: "every invariant held, and every step follows",
    1: "something is wrong with what was recorded",
    2: "nothing wrong up to the damage; what came after is not known",
}


class Reporter(Protocol):
    """What shows judged traces to somebody."""

    def judged(self, path: str, judgement: Judgement) -> None:
        """Show what one trace came to."""
        ...

    def cannot(self, path: str, error: CannotWork) -> None:
        """Show that a trace could not be read at all."""
        ...

    def close(self, results: list[tuple[str, int, str]]) -> None:
        """Show what all traces came to: path, exit code, headline of each."""
        ...


def headline(judgement: Judgement) -> str:
    """Say in half a sentence what a trace came to."""
    broken = {f.violation.invariant for f in judgement.violations} - {FOLLOWS}
    astray = {f.step for f in judgement.violations if f.violation.invariant == FOLLOWS}
    parts = [f"{count(len(broken), 'invariant')} violated"] if broken else []
    if astray:
        parts.append(f"{count(len(astray), 'step')} not explained")
    if judgement.num_failures:
        parts.append(f"{count(judgement.num_failures, 'expectation')} failed")
    if judgement.num_differences:
        parts.append("verdict disputed")
    whole = (
        "everything held"
        if judgement.damage is None
        else f"nothing wrong in {count(judgement.steps, 'step')}"
    )
    said = ", ".join(parts) or whole
    return said if judgement.damage is None else f"{said}, then damaged"


def damage_line(judgement: Judgement) -> str:
    """Say where the reading ended early; empty where it did not."""
    return "" if judgement.damage is None else str(judgement.damage)


class TextReporter:
    """A panel for each violating step, and one with the verdict; with ``quiet`` one line for each trace."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = text_console()
        self._look = look_of(self._console)
        self._quiet = quiet

    def judged(self, path: str, judgement: Judgement) -> None:
        """Print what one trace came to; damage on stderr too, as ``file:line: message``."""
        if judgement.damage is not None:
            click.echo(clean(damage_line(judgement)), err=True)
        if self._quiet:
            return
        for renderable in (*self._violations(judgement), self._panel(path, judgement)):
            self._console.print(renderable)

    def cannot(self, path: str, error: CannotWork) -> None:  # noqa: ARG002
        """Print the message on stderr."""
        error.show()

    def close(self, results: list[tuple[str, int, str]]) -> None:
        """Print a line for each trace, where there are several or nothing else was printed."""
        if len(results) > 1 or self._quiet:
            width = min(max(len(path) for path, _, _ in results), self._look.width // 2)
            for path, code, words in results:
                sign, style = self._sign(code)
                line = Text.assemble((f"{sign} {clean(path).ljust(width)}", style), f"  {words}")
                for part in hang(line, 0, self._look.width, deeper=4):
                    self._console.print(part)

    def _violations(self, judgement: Judgement) -> Iterator[RenderableType]:
        proved: set[str] = set()
        by_step = [(step, list(found)) for step, found in groupby(judgement.violations, lambda f: f.step)]
        for step, found in by_step[:MAX_PANELS]:
            yield violation_panel(step, [_shown(entry) for entry in found], self._look, proved)
            proved |= {entry.violation.invariant for entry in found}
        if len(by_step) > MAX_PANELS:
            more = judgement.num_violations - sum(len(found) for _, found in by_step[:MAX_PANELS])
            yield Text(f"and {count(more, 'more violation')} in later steps; --format json has them", DIM)

    def _panel(self, path: str, judgement: Judgement) -> RenderableType:
        sign, style = self._sign(judgement.exit_code)
        return Panel(
            _facts(judgement),
            title=Text(f"{sign} {clean(path)}: {headline(judgement)}", style),
            title_align="left",
            border_style=style,
            box=box.ROUNDED,
            width=self._look.width,
        )

    def _sign(self, code: int) -> tuple[str, str]:
        signs = self._look.signs
        return {0: (signs.good, GOOD), 1: (signs.bad, BAD), 2: (signs.dot, NEUTRAL)}[code]


def _shown(found: Found) -> Violation:
    """A violation as it may be printed: what a trace says may hold characters that a terminal obeys."""
    v = found.violation
    proof = tuple(clean(sentence) for sentence in v.proof)
    return Violation(clean(v.invariant), clean(v.subject), clean(v.found), clean(v.expected), proof)


def _facts(judgement: Judgement) -> Table:
    header = judgement.header
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style=DIM, no_wrap=True)
    table.add_column(overflow="fold")
    config = header.config
    where = "" if config is None else f" ({config.backend} on {config.device})"
    table.add_row("recorded", Text(clean(f"{header.scenario} on {header.engine}{where}, by {header.tool}")))
    if header.faults:
        table.add_row("fault", Text(clean(", ".join(header.faults))))
    checks = f"{count(judgement.num_invariants, 'invariant')}, and whether each step follows"
    table.add_row("judged", f"{count(judgement.steps, 'step')}: {checks}")
    if judgement.measured:
        measured = count(judgement.measured, "comparison")
        table.add_row("tensors", f"{measured}, as recorded: a trace has no tensors to measure again")
    for row in _findings(judgement):
        table.add_row(*row)
    table.add_row("exit code", f"{judgement.exit_code}: {MEANING[judgement.exit_code]}")
    return table


def _findings(judgement: Judgement) -> Iterator[tuple[str, RenderableType]]:
    if judgement.violations:
        yield "violated", joined(_first_of_each(judgement.violations), "\n")
    caught = None if judgement.verdict is None else judgement.verdict.caught_at
    if judgement.violations and caught is not None:
        yield "expected", f"the scenario set out to show what breaks in step {caught}"
    expected = judgement.held_expectations + judgement.num_failures
    if expected:
        yield (
            "scenario",
            f"{judgement.held_expectations} of {count(expected, 'expectation')} held, as recorded",
        )
    if judgement.failures:
        lines = [Text(clean(f"line {f.line}: {f.message}")) for f in judgement.failures[:12]]
        yield "failed", joined(lines, "\n")
    if judgement.differences:
        lines = [Text(clean(f"line {d.number}: {d.message}")) for d in judgement.differences[:12]]
        if judgement.num_differences > len(lines):
            lines.append(Text(f"and {count(judgement.num_differences - len(lines), 'more difference')}"))
        yield "disputed", joined(lines, "\n")
    elif judgement.verdict is not None:
        ending = "" if judgement.verdict.ending == "complete" else f"; the run was {judgement.verdict.ending}"
        yield "verdict", f"the same as the one recorded{ending}"
    if judgement.damage is not None:
        yield "damage", Text(clean(f"line {judgement.damage.line}: {judgement.damage.message}"), BAD)


def _first_of_each(violations: Iterable[Found]) -> list[Text]:
    """One line per invariant: its first step, subject and numbers, and how many came after."""
    by_invariant: dict[str, list[Found]] = {}
    for found in violations:
        by_invariant.setdefault(found.violation.invariant, []).append(found)
    lines = []
    for invariant, every in by_invariant.items():
        first, more = _shown(every[0]), len(every) - 1
        notes = [f"and {more} more"] if more else []
        notes += ["as recorded"] if from_tensors(first) else []
        note = f" ({', '.join(notes)})" if notes else ""
        text = f"from step {every[0].step}, {first.subject}: {first.found}, expected {first.expected}{note}"
        lines.append(Text.assemble((invariant, "bold"), f" {text}"))
    return lines


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class JsonReporter:
    """One object per line: violations, differences, failed expectations, then the verdict of each trace."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet

    def judged(self, path: str, judgement: Judgement) -> None:
        """Write what one trace came to."""
        for record in () if self._quiet else self._records(judgement):
            click.echo(_json({"type": record["type"], "trace": path, **record}))
        counted = ("steps", "measured", "num_violations", "num_differences", "num_failures", "exit_code")
        damage = judgement.damage
        click.echo(
            _json(
                {
                    "type": "verdict",
                    "trace": path,
                    "held": judgement.exit_code == 0,
                    "scenario": judgement.header.scenario,
                    "engine": judgement.header.engine,
                    **{name.removeprefix("num_"): getattr(judgement, name) for name in counted},
                    "recorded": None if judgement.verdict is None else asdict(judgement.verdict),
                    "damage": None if damage is None else {"line": damage.line, "message": damage.message},
                }
            )
        )

    def _records(self, judgement: Judgement) -> Iterator[dict[str, Any]]:
        for found in judgement.violations:
            place = {"line": found.number, "step": found.step, "as_recorded": from_tensors(found.violation)}
            yield {"type": "violation", **place, **asdict(found.violation)}
        for difference in judgement.differences:
            yield {"type": "difference", "line": difference.number, "message": difference.message}
        for failed in judgement.failures:
            yield {"type": "failure", "scenario_line": failed.line, "message": failed.message}

    def cannot(self, path: str, error: CannotWork) -> None:
        """Write an error object, and the message on stderr."""
        line, message = error.problems[0] if error.problems else (0, error.message)
        click.echo(_json({"type": "error", "trace": path, "line": line, "message": message, "exit_code": 2}))
        error.show()

    def close(self, results: list[tuple[str, int, str]]) -> None:
        """Nothing more to say: each trace had its verdict."""


class GithubReporter:
    """An ``::error`` for each finding, at the line of the trace, and one line with the verdict."""

    def judged(self, path: str, judgement: Judgement) -> None:
        """Write the annotations of one trace."""
        for found in judgement.violations:
            violation = _shown(found)
            body = (f"found {violation.found}, expected {violation.expected}", *violation.proof)
            title = f"{violation.invariant} (step {found.step}, {violation.subject})"
            self._error(path, found.number, title, "\n".join(body))
        for difference in judgement.differences:
            self._error(path, difference.number, "verdict disputed", difference.message)
        for failed in judgement.failures:
            self._error(path, 1, f"expectation failed (scenario line {failed.line})", failed.message)
        if judgement.damage is not None:
            self._error(path, judgement.damage.line, "damaged trace", judgement.damage.message)
        click.echo(clean(f"{path}: {headline(judgement)}"))

    def _error(self, path: str, line: int, title: str, message: str) -> None:
        from replaylife.cli.report_data import command

        text = "\n".join(clean(part) for part in message.split("\n"))
        click.echo(command("error", text, file=path, line=str(max(1, line)), title=clean(title)))

    def cannot(self, path: str, error: CannotWork) -> None:
        """Write an annotation, and the message on stderr."""
        line, message = error.problems[0] if error.problems else (1, error.message)
        self._error(path, line, "trace cannot be read", message)
        error.show()

    def close(self, results: list[tuple[str, int, str]]) -> None:
        """Nothing more to say: each trace had its line."""
