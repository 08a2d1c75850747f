"""``replaylife invariants``: what must be true after every action."""

from __future__ import annotations

import click

from replaylife.cli.listing import format_option, show_list, word_argument

HELP = """List the invariants: what each claims, what it is judged from, and the faults that trip it.

With WORDs only those that have each of them in what is listed.
"""


@click.command("invariants", help=HELP)
@word_argument
@format_option
def command(words: tuple[str, ...], form: str) -> None:
    """List them; the parsed arguments come from click."""
    show_list("invariant", words, form, "All of one: replaylife explain ID.")
