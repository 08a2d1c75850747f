"""``replaylife diff``: two traces side by side, from the first step where they part."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from replaylife.cli.errors import CannotWork
from replaylife.cli.listing import format_option, write_json

if TYPE_CHECKING:
    from replaylife.lifecycle.trace.parting import Parting
    from replaylife.lifecycle.trace.reader import TraceReader

MAX_LISTED = 1_000  # steps in a JSON document

HELP = """Show two traces side by side, from the first step where they part.

Compared is what they say of tokens: keys and the states under them, how far each request and its state are,
how much is in use, what is newly violated. Slot numbers and node ids are not, so that a fault can be held
against its clean twin, and one engine against another.

Exit codes: 0 they are the same; 1 they part; 2 one of them cannot be read.
"""


@click.command("diff", help=HELP, context_settings={"max_content_width": 100})
@click.argument("left", metavar="A")
@click.argument("right", metavar="B")
@click.option(
    "--steps", type=click.IntRange(0, MAX_LISTED), default=5, show_default=True,
    help="Show what changes in so many steps after the first.",
)  # fmt: skip
@format_option
def command(left: str, right: str, steps: int, form: str) -> None:
    """Compare two traces; the parsed arguments come from click."""
    from replaylife.lifecycle.trace.parting import partings

    with _reading(left) as a, _reading(right) as b:
        found = partings(a, b)
        parted = _as_json(found, steps) if form == "json" else _as_text(a, b, found, steps)
    sys.exit(1 if parted else 0)


def _as_text(left: TraceReader, right: TraceReader, found: Iterator[Parting], steps: int) -> bool:
    from replaylife.cli.console import text_console
    from replaylife.view.look import look_of
    from replaylife.view.sidebyside import compared, same_line

    console = text_console()
    look = look_of(console)
    parted = False
    for part in compared(left, right, found, look, steps):
        parted = True
        console.print(part)
    if not parted:
        console.print(same_line(look))
    return parted


def _as_json(found: Iterator[Parting], steps: int) -> bool:
    listed = [
        {"step": parting.place, "differences": [difference._asdict() for difference in parting.differences]}
        for parting in islice(found, steps + 1)
    ]
    write_json({"same": not listed, "partings": listed})
    return bool(listed)


@contextmanager
def _reading(path: str) -> Iterator[TraceReader]:
    from replaylife.lifecycle.trace.errors import TraceError
    from replaylife.lifecycle.trace.reader import TraceReader

    try:
        reader = TraceReader(Path(path))
    except TraceError as error:
        problems = [(error.line, error.message)] if error.line else []
        raise CannotWork(str(error), path, problems) from None
    with reader:
        yield reader
