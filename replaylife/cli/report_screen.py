"""Shows a run full-screen as it is played: the viewer's screen, on pages that are still being written."""

from __future__ import annotations

from contextlib import ExitStack

from replaylife.cli.errors import CannotWork
from replaylife.cli.report_text import TextReporter
from replaylife.cli.session import Stop
from replaylife.lifecycle.scenario.player import Failed, Outcome, Played
from replaylife.view.heading import Run
from replaylife.view.screen.frame import Framing
from replaylife.view.screen.live import LivePages
from replaylife.view.screen.navigator import Navigator, Wish
from replaylife.view.screen.terminal import Screen, opened
from replaylife.view.screen.viewer import browse
from replaylife.view.verdict import Summary, headline


class ScreenReporter(TextReporter):
    """Stops after each step, or where the reader asked to; prints the verdict when the screen is left."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self._stack = ExitStack()
        self._screen: Screen | None = None
        self._pages = LivePages()
        self._navigator = Navigator(self._pages, 1)
        self._left = False

    def begin(self, run: Run, num_actions: int) -> None:  # noqa: ARG002
        """Take the terminal over."""
        self._pages = LivePages()
        self._navigator = Navigator(self._pages, 1)
        self._navigator.wish = Wish("step", 1)
        self._framing = Framing(run, 0, self._look)
        self._left = False
        self._screen = self._stack.enter_context(opened(self._console))

    def tell(self, outcome: Outcome) -> None:
        """Add a page; show it if it is what the reader waits for. Raises :class:`Stop`."""
        navigator = self._navigator
        if isinstance(outcome, Played):
            page = self._pages.add(outcome)
            if navigator.fulfilled(page):
                navigator.go(page.step)
                self._browse()
            return
        self._pages.judge(outcome)
        if isinstance(outcome, Failed) and not (navigator.wish and navigator.wish.target == "end"):
            wish = navigator.wish
            navigator.go(self._pages.last)
            navigator.message = f"line {outcome.line}: an expectation failed"
            self._browse()
            navigator.wish = navigator.wish or wish

    def end(self, summary: Summary) -> None:
        """Show the end of the run, until the reader leaves; then print the verdict."""
        if summary.ending == "complete" and not self._left and self._pages.last:
            self._pages.going_on = False
            self._navigator.go(self._pages.last)
            self._navigator.message = f"{summary.run.name}: {headline(summary)}"
            self._browse()
        self._leave()
        super().end(summary)

    def cannot(self, argument: str, error: CannotWork) -> None:
        """Give the terminal back, and say why the run could not go on."""
        self._leave()
        super().cannot(argument, error)

    def _browse(self) -> None:
        if self._screen is None:
            return
        try:
            after = browse(self._screen, self._navigator, self._framing)
        except BaseException:
            self._leave()
            raise
        if after == "quit" and self._pages.going_on:
            self._left = True
            raise Stop

    def _leave(self) -> None:
        self._screen = None
        self._stack.close()
