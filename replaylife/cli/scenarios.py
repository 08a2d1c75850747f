"""``replaylife scenarios``: the shipped scenarios."""

from __future__ import annotations

import click

from replaylife.cli.listing import format_option, show_list, word_argument

HELP = """List the shipped scenarios: title, set-up, steps, and the faults that they seed.

With WORDs only those that have each of them in what is listed.
"""


@click.command("scenarios", help=HELP)
@word_argument
@format_option
def command(words: tuple[str, ...], form: str) -> None:
    """List them; the parsed arguments come from click."""
    show_list("scenario", words, form, "Play one: replaylife run NAME. All of one: replaylife explain NAME.")
