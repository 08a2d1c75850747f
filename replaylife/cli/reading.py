"""Opens a trace for a command that shows it; what cannot be read becomes one message and exit code 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from replaylife.cli.errors import CannotWork

if TYPE_CHECKING:
    from replaylife.view.book import Book


LARGE = 4_000_000  # bytes; smaller files are done before a bar would help


@contextmanager
def open_book(path: str) -> Iterator[Book]:
    """Yield the trace at ``path``. Raises :class:`CannotWork` where it cannot be read, or has no step."""
    from replaylife.lifecycle.trace.errors import TraceError
    from replaylife.lifecycle.trace.reader import TraceReader
    from replaylife.view.book import Book

    try:
        reader = TraceReader(Path(path))
        with reader:
            book = Book(reader)
            if book.last < book.first:
                raise CannotWork(f"{path}: there is no step in it{_why(book)}")
            yield book
    except TraceError as error:
        problems = [(error.line, error.message)] if error.line else []
        raise CannotWork(str(error), path, problems) from None


def _why(book: Book) -> str:
    return f" ({book.note})" if book.note else ""


def step_meant(book: Book, at: str | None) -> int:
    """Return the step that ``--at`` means: a number, ``first``, ``last``, ``violation`` (the first), or
    ``last-violation``; without it the first violation, else the last step.

    Raises :class:`CannotWork` for a step that the trace does not have.
    """
    violating = book.violating
    if at is None:
        return violating[0] if violating else book.last
    if at in ("violation", "last-violation"):
        if not violating:
            raise CannotWork(f"--at {at}: no step of {book.reader.path} broke anything")
        return violating[0 if at == "violation" else -1]
    named = {"first": book.first, "last": book.last}
    if at in named:
        return named[at]
    if not at.isdecimal() or len(at) > 12 or not book.first <= int(at) <= book.last:
        raise CannotWork(
            f"--at {at}: need a step from {book.first} to {book.last}, first, last, violation, "
            "or last-violation"
        )
    return int(at)


@contextmanager
def reading_bar(name: str, size: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr for a large file; yield what tells it how many bytes have been read."""
    from rich.console import Console

    console = Console(stderr=True)
    if size < LARGE or not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(Path(name).name, total=size)
        yield lambda read: progress.update(task, completed=read)
