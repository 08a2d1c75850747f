"""What the commands of the reference have in common: lists and entries, as text or one JSON document."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from replaylife.cli.errors import CannotWork

if TYPE_CHECKING:
    from rich.text import Text

    from replaylife.reference import Entry

format_option = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="For people, or one JSON document.",
)  # fmt: skip
word_argument = click.argument("words", metavar="[WORD]...", nargs=-1)


def show_list(kind: str, words: tuple[str, ...], form: str, closing: str) -> None:
    """Print all entries of a kind, or those that have every word in what the list shows of them.

    Raises :class:`CannotWork` if there is none.
    """
    from replaylife.reference import entries, record
    from replaylife.view.reference import brief_lines, brief_text

    wanted = [word.lower() for word in words]
    chosen = [entry for entry in entries(kind) if all(word in brief_text(entry).lower() for word in wanted)]
    if not chosen:
        raise CannotWork(f"no {kind} has {' and '.join(map(repr, words))} in it; see replaylife {kind}s")
    if form == "json":
        write_json([record(entry) for entry in chosen])
        return
    from replaylife.view.look import count

    print_entries(chosen, brief_lines)
    click.echo(f"\n{count(len(chosen), kind)}. {closing}", err=True)


def write_json(document: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=2))


def print_entries(entries: Iterable[Entry], lines: Callable[[Any, Any], Iterable[Text]]) -> None:
    """Print entries with a blank line between."""
    from replaylife.cli.report_text import text_console
    from replaylife.view.look import look_of

    console = text_console()
    look = look_of(console)
    for number, entry in enumerate(entries):
        if number:
            console.print()
        for line in lines(entry, look):
            console.print(line, soft_wrap=True)
