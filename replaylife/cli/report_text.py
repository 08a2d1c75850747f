"""Shows runs to people: the trace and the verdict on stdout, a progress bar on stderr."""

from __future__ import annotations

from collections.abc import Iterable

import click
from rich.console import RenderableType
from rich.text import Text

from replaylife.cli.console import text_console as text_console
from replaylife.cli.errors import CannotWork
from replaylife.cli.progress import Bar
from replaylife.cli.session import Stop
from replaylife.lifecycle.scenario.player import Failed, Outcome, Played
from replaylife.view.heading import Run, heading, legend, reproduce_line
from replaylife.view.look import look_of
from replaylife.view.narrator import Narrator, expectation_lines
from replaylife.view.verdict import Summary, summary_lines, verdict_panel

PROMPT = "  Enter next   c continue   q quit "


class TextReporter:
    """Tells the story step by step; with ``quiet`` only what broke, and the verdict."""

    def __init__(self, *, quiet: bool = False, stepwise: bool = False) -> None:
        self._console = text_console()
        self._look = look_of(self._console)
        self._quiet, self._stepwise = quiet, stepwise
        self._bar = Bar()
        self._run: Run | None = None
        self._narrator: Narrator | None = None
        self._legend_told = False

    def begin(self, run: Run, num_actions: int) -> None:
        """Print title and legend."""
        if self._run is not None and not self._quiet:
            self._print([Text()])
        self._run = run
        self._narrator = Narrator(run, self._look, together=not self._stepwise)
        if not self._quiet:
            self._print(heading(run, self._look))
            if not self._legend_told:
                self._print(legend(run, self._look))
                self._legend_told = True
        if not self._stepwise:
            self._bar.start(run.name, num_actions)

    def tell(self, outcome: Outcome) -> None:
        """Print the step, or hold it back if it may be drawn together with the next."""
        narrator = self._narrator
        assert narrator is not None, "begin comes first"
        if not self._quiet:
            self._print(narrator.tell(outcome))
        elif isinstance(outcome, Played):
            self._print(narrator.violations(outcome))
        elif isinstance(outcome, Failed) and self._run is not None:
            self._print(expectation_lines(outcome, self._run.path, self._look))
        if isinstance(outcome, Played):
            self._bar.advance()
            if self._stepwise:
                self._pause(narrator)

    def end(self, summary: Summary) -> None:
        """Print what was held back, then the verdict."""
        self._print_rest()
        self._print([Text(), verdict_panel(summary, self._look)])
        if not summary.verdict.held:
            self._print([reproduce_line(summary.run, indent=2)])
        self._narrator = None

    def cannot(self, argument: str, error: CannotWork) -> None:  # noqa: ARG002
        """Print what was held back, and the message on stderr."""
        self._print_rest()
        self._narrator = None
        error.show()

    def close(self, results: list[tuple[str, int, str]]) -> None:
        """Print a table of the runs, where there are several."""
        self._bar.stop()
        if len(results) > 1:
            self._print([Text(), *summary_lines(results, self._look)])

    def _print_rest(self) -> None:
        if self._narrator is not None and not self._quiet:
            self._print(self._narrator.flush())
        self._bar.stop()

    def _print(self, renderables: Iterable[RenderableType]) -> None:
        due = list(renderables)
        if not due:
            return
        with self._bar.hidden():
            for renderable in due:
                unwrapped = isinstance(renderable, Text) and bool(renderable.no_wrap)
                self._console.print(renderable, soft_wrap=unwrapped)

    def _pause(self, narrator: Narrator) -> None:
        click.echo(PROMPT, err=True, nl=False)
        try:
            key = click.getchar()
        finally:
            click.echo("\r" + " " * len(PROMPT) + "\r", err=True, nl=False)
        if key in ("q", "Q", "\x04"):
            raise Stop
        if key in ("c", "C"):
            self._stepwise = False
            narrator.draw_together()
