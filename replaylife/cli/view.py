"""``replaylife view``: step through a recorded trace, full-screen, as print, page or picture."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

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

Exit codes: 0 it was shown, whatever is in it ('replaylife check' judges); 2 it cannot be read.
"""


@click.command("view", help=HELP, context_settings={"max_content_width": 100})
@click.argument("trace", metavar="TRACE")
@click.option(
    "--at", metavar="STEP", help="Print this step: a number, first, last, violation, last-violation."
)
@click.option("--html", metavar="FILE", help="Write one self-contained page, to open or to attach.")
@click.option("--force", is_flag=True, help="Replace files that are not empty.")
def command(trace: str, at: str | None, html: str | None, force: bool) -> None:
    """Show a trace; the parsed arguments come from click."""
    exports = {"--html": html}
    wanted = {option: name for option, name in exports.items() if name is not None}
    check_writable(wanted, trace, force=force)
    with open_book(trace) as book:
        if not wanted:
            sys.exit(_show(book, at))
        for option, name in wanted.items():
            write(option, name, _exported(book, option))


def _exported(book: Book, option: str) -> str:
    """Return what an option is to write."""
    assert option == "--html", option
    from replaylife.view.page.build import build_page

    return build_page(book)


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
    for line in lines:
        console.print(line, soft_wrap=bool(getattr(line, "no_wrap", False)))
    return 0
