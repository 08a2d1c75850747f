"""The console that reports are printed on."""

from __future__ import annotations

import sys

from rich.console import Console

from replaylife.cli.errors import silence_stdout


class QuietOnBrokenPipe(Console):
    """A console that ends the program without a word when its reader has gone."""

    def on_broken_pipe(self) -> None:
        """Leave with the code of a command whose reader has gone."""
        self.quiet = True
        raise SystemExit(silence_stdout())


def text_console() -> Console:
    """Return the console for stdout: colour only on a terminal, ``NO_COLOR`` and ``COLUMNS`` honoured."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
    return QuietOnBrokenPipe(highlight=False, markup=False, emoji=False)
