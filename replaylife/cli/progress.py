"""A progress bar on stderr for long runs, out of the way whenever something is printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LONG = 200  # actions; shorter runs are over before a bar would help


class Bar:
    """Shows how far a run is. Does nothing where stderr is no terminal, or for a short run."""

    def __init__(self, shortest: int = LONG) -> None:
        self._shortest = shortest
        self._console = Console(stderr=True)
        self._progress: Progress | None = None

    def start(self, name: str, num_actions: int) -> None:
        """Show a bar for a run of about ``num_actions``."""
        self.stop()
        if num_actions < self._shortest or not self._console.is_terminal:
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._progress = Progress(
            *columns, console=self._console, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._progress.add_task(name, total=num_actions)
        self._progress.start()

    def advance(self) -> None:
        """Move on by one action."""
        if self._progress is not None:
            self._progress.advance(self._progress.task_ids[0])

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Take the bar off the screen for as long as something else is printed."""
        if self._progress is None:
            yield
            return
        self._progress.stop()
        yield
        self._progress.start()

    def stop(self) -> None:
        """Take the bar away for good."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
