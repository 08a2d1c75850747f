"""The command ``replaylife``: which commands there are, and what happens to errors that nobody expected."""

from __future__ import annotations

import os
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

import click

from replaylife.cli.errors import EXIT_INTERRUPTED, CannotWork, silence_stdout, wants_traceback


class Entry(NamedTuple):
    """Where a command lives, and the line that the help has for it."""

    module: str
    help: str


COMMANDS = {
    "run": Entry("replaylife.cli.run", "Play scenarios, check every step, print what happens."),
    "check": Entry("replaylife.cli.check", "Judge recorded traces again, from what they say alone."),
    "explore": Entry(
        "replaylife.cli.explore", "Go through every state of a small world, and check every step."
    ),
    "view": Entry("replaylife.cli.view", "Step through a recorded trace; HTML page, pictures."),
    "diff": Entry("replaylife.cli.diff", "Show two traces side by side, from where they part."),
    "conformance": Entry(
        "replaylife.cli.conformance", "Play shipped scenarios on the engines that are installed, and compare."
    ),
    "schema": Entry("replaylife.cli.schema", "Print the JSON Schema of scenario files, or of traces."),
    "scenarios": Entry("replaylife.cli.scenarios", "List the shipped scenarios."),
    "faults": Entry("replaylife.cli.faults", "List the faults that can be seeded, and what catches them."),
    "invariants": Entry("replaylife.cli.invariants", "List what must hold after every action."),
    "explain": Entry("replaylife.cli.explain", "Explain a fault, an invariant, a strategy or a scenario."),
    "size": Entry("replaylife.cli.size", "Say what a slot costs in bytes, and how many fit in a budget."),
    "traffic": Entry(
        "replaylife.cli.traffic", "Count the bytes of a decode step against L, and their least time."
    ),
    "replay": Entry(
        "replaylife.cli.replay", "Play a request log through the lifecycle, checked and counted."
    ),
    "sweep": Entry("replaylife.cli.sweep", "Play a request log at many points, in parallel, and compare."),
    "bench": Entry(
        "replaylife.cli.bench", "Compare decode kernels with those of other projects, and tune them."
    ),
}


class Program(click.Group):
    """A group that imports a command when it is used, not when its name is listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command, ``None`` if there is no such."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = import_module(entry.module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; name the nearest where there is none."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            close = get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(COMMANDS)}"
            raise CannotWork(f"no command is named {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn what it did not foresee into one message and an exit code."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (KeyboardInterrupt, click.Abort):
            raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
        except BrokenPipeError:
            raise click.exceptions.Exit(silence_stdout()) from None
        except Exception as error:
            if wants_traceback(os.environ):
                raise
            raise CannotWork.internal(error) from None


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="replaylife", prog_name="replaylife")
def main() -> None:
    """Play the life of a recurrent state in a serving engine, and find the step that broke it.

    Exit codes: 0 everything held; 1 an invariant was violated, or an expectation of a scenario failed;
    2 the command could not do its work; 3 a search stopped at its budget; 130 interrupted.
    """
