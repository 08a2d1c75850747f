"""``replaylife run``: play scenarios, check every step, print what happens."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from replaylife.cli.complete import complete_faults, complete_scenarios
from replaylife.cli.errors import EXIT_INTERRUPTED, CannotWork

if TYPE_CHECKING:
    from replaylife.cli.options import Options
    from replaylife.cli.session import Reporter

HELP = """Play scenarios, check every invariant after every step, print what happens.

SCENARIO is a file, or the name of a shipped scenario (replaylife run multiturn). A violation does not end
a run: what it does to the next turn is shown too.

\b
Exit codes, the worst of all scenarios:
  0    everything held
  1    an invariant was violated, or an expectation failed
  2    a scenario could not be played
  130  interrupted

\b
--format json writes one object per line, told apart by "type":
  step         scenario, line, step, action, events, requests, tree, free_slots,
               kv_free, exceeded (measurements), violations (with proof, fresh)
  expectation  scenario, line, held, message
  verdict      scenario, path, held, ending, exit_code, engine, faults, steps,
               checks, measured, launches, violations, failures, reproduce
  error        scenario, exit_code, message, problems (line, message)

--format github writes workflow commands (::error file=...,line=...) for violations and failed expectations.

--trace FILE records the run, one line of JSON per step, each flushed: a killed run leaves a readable trace.
It takes one scenario, and a FILE that does not exist yet or is empty (any, with --force).

--quiet leaves out the steps: the text keeps violations and verdicts, JSON the verdicts and errors.
"""


def _device(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001
    if re.fullmatch(r"auto|cpu|cuda(:\d+)?", value) is None:
        raise click.BadParameter(f"{value!r}; need cpu, cuda, cuda:0, cuda:1, … or auto")
    return value


@click.command("run", help=HELP, context_settings={"max_content_width": 100})
@click.argument(
    "scenarios", metavar="SCENARIO...", nargs=-1, required=True, shell_complete=complete_scenarios
)
@click.option(
    "--engine", default="reference", show_default=True, metavar="NAME",
    help="Whose cache lives through it: ours, or sglang's own classes (docs/sglang.md).",
)  # fmt: skip
@click.option(
    "--backend",
    type=click.Choice(["none", "torch", "triton", "auto"]),
    default="auto",
    show_default=True,
    help="What computes: Triton kernels (auto), their torch twins, or nothing (ledger only, instant).",
)
@click.option(
    "--device", default="auto", callback=_device, metavar="auto|cpu|cuda[:N]", show_default=True,
    help="Where it computes; auto is cuda where there is one, and with --engine cpu.",
)  # fmt: skip
@click.option(
    "--fault", "faults", multiple=True, metavar="ID", shell_complete=complete_faults,
    help="Seed a fault, beside the scenario's own.",
)  # fmt: skip
@click.option(
    "--witness", is_flag=True, help="Use the model whose tensors spell out what they have absorbed."
)
@click.option("--gate", type=click.Choice(["gdn", "kda"]), help="Override the scenario's gate.")
@click.option(
    "--state-dtype", type=click.Choice(["fp32", "bf16", "fp16"]), help="Override the state's dtype."
)
@click.option(
    "--step",
    "stepwise",
    is_flag=True,
    help="Stop after each step, full-screen: arrows step, ? shows all keys.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "github"]), default="text", show_default=True,
    help="For people, for programs, for GitHub workflows.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="Print what broke and the verdict, not the steps.")
@click.option(
    "--trace", metavar="FILE", help="Record every step in FILE, for 'replaylife check' and other readers."
)
@click.option("--force", is_flag=True, help="Let --trace replace a file that is not empty.")
def command(scenarios: tuple[str, ...], form: str, stepwise: bool, quiet: bool, **engine: Any) -> None:
    """Play scenarios; the parsed arguments come from click."""
    _check_stepwise(stepwise, form, quiet)
    from replaylife.cli.options import Options

    options = Options(**engine)
    options.check()
    options.check_trace(len(scenarios))
    sys.exit(_play_all(scenarios, options, _reporter(form, stepwise, quiet)))


def _check_stepwise(stepwise: bool, form: str, quiet: bool) -> None:
    if stepwise and (form != "text" or quiet):
        raise CannotWork("--step shows each step to a person: leave --quiet out, and use --format text")
    if stepwise and not sys.stdin.isatty():
        raise CannotWork(
            "--step waits for keys, and stdin is no terminal; leave it out, or run in a terminal"
        )


def _reporter(form: str, stepwise: bool, quiet: bool) -> Reporter:
    if stepwise:
        from replaylife.view.screen.terminal import is_interactive

        if is_interactive():
            from replaylife.cli.report_screen import ScreenReporter

            return ScreenReporter()
    if form == "text":
        from replaylife.cli.report_text import TextReporter

        return TextReporter(quiet=quiet, stepwise=stepwise)
    from replaylife.cli.report_data import GithubReporter, JsonReporter

    return JsonReporter(quiet=quiet) if form == "json" else GithubReporter()


def _play_all(scenarios: tuple[str, ...], options: Options, reporter: Reporter) -> int:
    """Play one scenario after the other and return the worst exit code."""
    from replaylife.cli.session import play_file
    from replaylife.view.verdict import headline

    results: list[tuple[str, int, str]] = []
    for argument in scenarios:
        try:
            summary = play_file(argument, options, reporter)
        except CannotWork as error:
            reporter.cannot(argument, error)
            results.append((argument, error.exit_code, "could not be played"))
            continue
        results.append((argument, summary.exit_code, headline(summary)))
        if summary.exit_code == EXIT_INTERRUPTED:
            break
    reporter.close(results)
    return max(code for _, code, _ in results)
