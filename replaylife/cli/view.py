"""``replaylife view``: step through a recorded trace, full-screen, as print, page or picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from replaylife.cli.errors import CannotWork
from replaylife.cli.reading import open_book, step_meant
from replaylife.cli.writing import check_writable, write

if TYPE_CHECKING:
    from replaylife.view.book import Book

HELP = """Step through a recorded trace.

TRACE is a file that 'replaylife run --trace FILE' wrote, or that another engine did. On a terminal it is
shown full-screen, from the first violation on: arrows step, v goes to the next violation, c to the next
change of what you follow, ? lists all keys. Where stdout is no terminal, or with --at, it is printed instead:
the whole story, or one step. A trace of more than 2,000 steps is told around its violations, and says so.

--html FILE writes a page that loads nothing: all steps with a slider, links to a step (#step=24), the same
keys, dark mode. It has up to 2,000 steps, those around the violations.

--svg, --tree and --graph draw one step, the first violation's unless --at names another. The name of a
graph's file says its format: .mmd (Mermaid), .dot or .gv (Graphviz), .graphml.

Exit codes: 0 it was shown, whatever is in it ('replaylife check' judges); 2 it cannot be read.
"""


@click.command("view", help=HELP, context_settings={"max_content_width": 100})
@click.argument("trace", metavar="TRACE")
@click.option(
    "--at",
    metavar="STEP",
    help="Print, or draw, this step: a number, first, last, violation, last-violation.",
)
@click.option("--html", metavar="FILE", help="Write one self-contained page, to open or to attach.")
@click.option("--svg", metavar="FILE", help="Draw the screen at a step.")
@click.option("--tree", metavar="FILE", help="Write the radix tree at a step as a graph.")
@click.option("--graph", metavar="FILE", help="Write tree, slots and requests at a step as a graph.")
@click.option("--force", is_flag=True, help="Replace files that are not empty.")
def command(trace: str, at: str | None, force: bool, **exports: str | None) -> None:
    """Show a trace; the parsed arguments come from click."""
    wanted = {f"--{option}": name for option, name in exports.items() if name is not None}
    check_writable(wanted, trace, force=force)
    for option in ("--tree", "--graph"):
        if option in wanted:
            _check_suffix(option, wanted[option])
    with open_book(trace) as book:
        if not wanted:
            sys.exit(_show(book, at))
        step = step_meant(book, at)
        for option, name in wanted.items():
            write(option, name, _exported(book, step, option, Path(name).suffix))


def _check_suffix(option: str, name: str) -> None:
    from replaylife.view.pictures import FORMATS

    if Path(name).suffix not in FORMATS:
        known = ".mmd (Mermaid), .dot or .gv (Graphviz), .graphml"
        raise CannotWork(f"{option} {name}: the name says the format; need one that ends in {known}")


def _exported(book: Book, step: int, option: str, suffix: str) -> str:
    """Return what an option is to write."""
    if option == "--html":
        from replaylife.view.page.build import build_page

        return build_page(book)
    from replaylife.view import pictures

    try:
        if option == "--svg":
            return pictures.svg(book, step)
        draw = pictures.tree_graph if option == "--tree" else pictures.state_graph
        return pictures.FORMATS[suffix](draw(book.page(step)))
    except LookupError as error:
        raise CannotWork(f"{book.reader.path}: {error}") from None


def _show(book: Book, at: str | None) -> int:
    from replaylife.cli.console import text_console
    from replaylife.view.screen.terminal import is_interactive

    console = text_console()
    if at is None and is_interactive():
        from replaylife.view.screen.viewer import view

        view(book, console, step_meant(book, at))
        return 0
    from replaylife.view.story import step_story, story

    lines = story(book, console) if at is None else step_story(book, console, step_meant(book, at))
    try:
        for line in lines:
            console.print(line, soft_wrap=bool(getattr(line, "no_wrap", False)))
    except LookupError as error:
        raise CannotWork(f"{book.reader.path}: {error}") from None
    return 0
