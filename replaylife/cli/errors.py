"""Errors that a user sees: one paragraph on stderr, an exit code, no traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any

import click

EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE, as a shell reports a command whose reader has gone
EXIT_BUDGET = 3  # a search stopped at its budget, nothing found
EXIT_INTERRUPTED = 130  # 128 + SIGINT
DEBUG = "REPLAYLIFE_DEBUG"


class CannotWork(click.ClickException):
    """The command could not do its work. ``problems`` are (line, message) where a file is to blame."""

    exit_code = 2

    def __init__(self, message: str, path: str = "", problems: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.path, self.problems = path, tuple(problems)

    @classmethod
    def internal(cls, error: Exception, where: str = "") -> CannotWork:
        """Return the message for a defect of this program."""
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        at = f" ({where})" if where else ""
        return cls(f"internal error{at}: {what}\nSet {DEBUG}=1 to see the traceback, and please report it.")

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the message to stderr; problems of a file as ``path:line: message``, for editors to find."""
        lines = [f"{self.path}:{line}: {message}" for line, message in self.problems]
        for line in lines or [f"replaylife: {self.message}"]:
            click.echo(line, file=file, err=True)


def wants_traceback(environ: Mapping[str, str]) -> bool:
    """Whether internal errors are to be raised instead of reported."""
    return environ.get(DEBUG, "") not in ("", "0")


def silence_stdout() -> int:
    """Send what is still written to stdout nowhere: its reader has gone. Returns the exit code for that."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    finally:
        os.close(nowhere)
    return EXIT_BROKEN_PIPE
