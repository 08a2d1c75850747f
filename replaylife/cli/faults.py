"""``replaylife faults``: the catalogue of seeded faults."""

from __future__ import annotations

import click

from replaylife.cli.listing import format_option, show_list, word_argument

HELP = """List the faults that can be seeded: what goes wrong, the invariants that must catch it, the
scenario that shows it, and the public report.

With WORDs only those that have each of them in what is listed.
"""


@click.command("faults", help=HELP)
@word_argument
@format_option
def command(words: tuple[str, ...], form: str) -> None:
    """List them; the parsed arguments come from click."""
    show_list(
        "fault",
        words,
        form,
        "All of one: replaylife explain ID. Seed one: replaylife run SCENARIO --fault ID.",
    )
