"""Explains a trace: each root of its violations as a short proof, or all of them as one JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from replaylife.cli.console import text_console
from replaylife.cli.listing import write_json
from replaylife.cli.reading import open_book, reading_bar
from replaylife.view.look import count, look_of

if TYPE_CHECKING:
    from rich.text import Text

    from replaylife.lifecycle.trace.causes import Causes
    from replaylife.lifecycle.trace.chain import Chain, Link
    from replaylife.view.book import Book
    from replaylife.view.look import Look

MAX_TOLD = 20  # roots told as text; JSON has all


def explain_trace(path: str, form: str) -> None:
    """Print the causes of what a trace records as violated. Raises ``CannotWork`` for what cannot be read."""
    with open_book(path) as book:
        with reading_bar(path, book.reader.size) as progress:
            causes = book.causes(book.first, book.last, progress)
        if form == "json":
            write_json(_document(path, book, causes))
            return
        console = text_console()
        for line in _lines(path, book, causes, look_of(console)):
            console.print(line, soft_wrap=bool(line.no_wrap))


def _lines(path: str, book: Book, causes: Causes, look: Look) -> Iterator[Text]:
    from rich.text import Text

    from replaylife.view.book import run_of
    from replaylife.view.chain import proof_lines
    from replaylife.view.heading import reproduce_line
    from replaylife.view.look import BAD, DIM, GOOD, clean, hang
    from replaylife.view.story import title_lines

    yield from title_lines(book, look)
    told = causes.chains[:MAX_TOLD]
    for chain in told:
        yield Text()
        yield from proof_lines(chain, look)
    more = len(causes.chains) - len(told) + causes.num_left_out
    yield Text()
    if more:
        yield Text(f"and {count(more, 'more root')}; --format json has them", DIM)
    if not causes.chains:
        yield Text(f"{look.signs.good} nothing was violated in {count(len(book.contents), 'step')}", GOOD)
    if book.note:
        yield from hang(Text(book.note, BAD), 0, look.width, deeper=2)
    if book.header.command:
        yield reproduce_line(run_of(book.header), indent=0)
    if told:
        see = f"replaylife view {clean(path)} --at {told[0].step}"
        yield Text.assemble(("see it:    ", DIM), see, no_wrap=True, overflow="ignore")


def _document(path: str, book: Book, causes: Causes) -> dict[str, Any]:
    return {
        "trace": path,
        "scenario": book.header.scenario,
        "steps": len(book.contents),
        "damage": book.note,
        "reproduce": list(book.header.command),
        "roots": [_root(chain) for chain in causes.chains],
        "roots_left_out": causes.num_left_out,
    }


def _root(chain: Chain) -> dict[str, Any]:
    return {
        "step": chain.step,
        "violation": asdict(chain.violation),
        "planted": _link(chain.planted),
        "carried": [_link(link) for link in chain.carried],
        "steps_that_carried": chain.num_carried,
        "bites": [_link(link) for link in chain.bites],
        "same_root": [{"step": step, **asdict(violation)} for step, violation in chain.also],
    }


def _link(link: Link) -> dict[str, Any]:
    return {"first": link.first, "last": link.last, "action": link.action, "text": link.text}
