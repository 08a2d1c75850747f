"""``replaylife check``: judge recorded traces again, from what they say alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from replaylife.cli.errors import EXIT_INTERRUPTED, CannotWork
from replaylife.cli.reading import reading_bar

if TYPE_CHECKING:
    from replaylife.cli.check_report import Reporter
    from replaylife.lifecycle.trace.judge import Judgement

HELP = """Judge recorded traces again, from what they say alone.

TRACE is a file that 'replaylife run --trace FILE' wrote, or that another engine did (docs/trace.md).
Positions, ownership and cursors are derived again from the snapshots, every step is checked to follow from
the one before by its action and events, and the outcome is compared with the verdict that the trace carries.
What was measured on tensors is reported as it was recorded.

\b
Exit codes, the worst of all traces:
  0    everything held
  1    an invariant is violated, a step does not follow, an expectation failed, or
       the recorded verdict is not what the steps show
  2    a trace could not be read, or is damaged and holds up to the damage
  130  interrupted

\b
--format json writes one object per line, told apart by "type":
  violation   trace, line, step, as_recorded, invariant, subject, found, expected,
              proof
  difference  trace, line, message
  failure     trace, scenario_line, message
  verdict     trace, held, scenario, engine, steps, measured, violations,
              differences, failures, exit_code, recorded, damage
  error       trace, line, message, exit_code

--format github writes workflow commands (::error file=...,line=...) at the lines of the trace.

--quiet leaves out the details: one line for each trace, or its JSON verdict.
"""


@click.command("check", help=HELP, context_settings={"max_content_width": 100})
@click.argument("traces", metavar="TRACE...", nargs=-1, required=True)
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "github"]), default="text", show_default=True,
    help="For people, for programs, for GitHub workflows.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="One line for each trace.")
def command(traces: tuple[str, ...], form: str, quiet: bool) -> None:
    """Judge traces; the parsed arguments come from click."""
    sys.exit(_check_all(traces, _reporter(form, quiet)))


def _reporter(form: str, quiet: bool) -> Reporter:
    from replaylife.cli import check_report

    if form == "github":
        return check_report.GithubReporter()
    kind = check_report.TextReporter if form == "text" else check_report.JsonReporter
    return kind(quiet=quiet)


def _check_all(traces: tuple[str, ...], reporter: Reporter) -> int:
    """Judge one trace after the other and return the worst exit code."""
    from replaylife.cli.check_report import headline
    from replaylife.lifecycle.trace.errors import TraceError

    results: list[tuple[str, int, str]] = []
    for path in traces:
        try:
            judgement = _judge(path)
        except TraceError as error:
            problems = [(error.line, error.message)] if error.line else []
            cannot = CannotWork(str(error), path, problems)
            reporter.cannot(path, cannot)
            results.append((path, cannot.exit_code, "could not be read"))
            continue
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
        reporter.judged(path, judgement)
        results.append((path, judgement.exit_code, headline(judgement)))
    reporter.close(results)
    return max(code for _, code, _ in results)


def _judge(path: str) -> Judgement:
    from replaylife.lifecycle.trace.judge import judge
    from replaylife.lifecycle.trace.reader import TraceReader

    with TraceReader(Path(path)) as reader, reading_bar(path, reader.size) as told:
        return judge(reader, told)
