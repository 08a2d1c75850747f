"""Command line. A command's module is imported when the command is used, heavy packages when it works."""

from replaylife.cli.program import main

__all__ = ["main"]
