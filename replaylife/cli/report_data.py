"""Shows runs to programs: JSON Lines, and workflow commands for GitHub."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click

from replaylife.cli.errors import CannotWork
from replaylife.lifecycle.scenario.player import Outcome
from replaylife.view.heading import Run, engine_words
from replaylife.view.records import error_record, json_line, outcome_record, verdict_record
from replaylife.view.verdict import Summary, headline


def _write(line: str) -> None:
    click.echo(line)  # flushes, so that a killed run leaves whole lines


class JsonReporter:
    """One JSON object per line: steps and expectations as they come, then the verdict of each run."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._run: Run | None = None

    def begin(self, run: Run, num_actions: int) -> None:  # noqa: ARG002
        """Remember whose outcomes follow."""
        self._run = run

    def tell(self, outcome: Outcome) -> None:
        """Write one outcome."""
        assert self._run is not None, "begin comes first"
        if not self._quiet:
            _write(json_line(outcome_record(self._run, outcome)))

    def end(self, summary: Summary) -> None:
        """Write the verdict."""
        _write(json_line(verdict_record(summary)))

    def cannot(self, argument: str, error: CannotWork) -> None:
        """Write an error object, and the message on stderr."""
        _write(json_line(error_record(argument, error.problems, error.message)))
        error.show()

    def close(self, results: list[tuple[str, int, str]]) -> None:
        """Nothing more to say: each run had its verdict."""


class GithubReporter:
    """An ``::error`` for each violation and failed expectation, at the scenario line that caused it."""

    def begin(self, run: Run, num_actions: int) -> None:
        """Nothing to say before the verdict: only it knows which violations were expected."""

    def tell(self, outcome: Outcome) -> None:
        """Nothing to say before the verdict."""

    def end(self, summary: Summary) -> None:
        """Write the annotations, then one line with the verdict."""
        for line in workflow_commands(summary):
            _write(line)
        _write(f"{summary.run.name} ({engine_words(summary.run)}): {headline(summary)}")

    def cannot(self, argument: str, error: CannotWork) -> None:
        """Write an annotation per problem, and the message on stderr."""
        for line, message in error.problems:
            _write(
                command("error", message, file=error.path, line=str(line), title="scenario cannot be played")
            )
        if not error.problems:
            _write(command("error", error.message, title=f"{argument} cannot be played"))
        error.show()

    def close(self, results: list[tuple[str, int, str]]) -> None:
        """Nothing more to say: each run had its line."""


def workflow_commands(summary: Summary) -> Iterator[str]:
    """Yield a workflow command for each violation that was not expected and each failed expectation."""
    path, lines = summary.run.path, summary.tally.lines
    again = f"reproduce: {shlex.join(summary.run.command)}"
    for step, violation in summary.verdict.unexpected:
        title = f"{violation.invariant} (step {step}, {violation.subject})"
        body = (f"found {violation.found}, expected {violation.expected}", *violation.proof, again)
        yield command("error", "\n".join(body), file=path, line=str(lines.get(step, 1)), title=title)
    for failed in summary.verdict.failures:
        yield command("error", failed.message, file=path, line=str(failed.line), title="expectation failed")


def command(kind: str, message: str, **properties: str) -> str:
    """Return a GitHub workflow command, its data and properties escaped as the runner unescapes them."""
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {listed}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
