"""A trace told without a terminal: its steps as a run prints them, or one step with all its panes."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.text import Text

from replaylife.view.book import Book, run_of
from replaylife.view.chain import chain_lines
from replaylife.view.heading import heading, legend, reproduce_line
from replaylife.view.look import BAD, BOLD, DIM, GOOD, Look, clean, count, hang, look_of
from replaylife.view.narrator import Narrator
from replaylife.view.screen.frame import overview, sight_of
from replaylife.view.windows import left_out, windows


def title_lines(book: Book, look: Look) -> Iterator[Text]:
    """Yield what was recorded: title, engine, faults."""
    run = run_of(book.header)
    if book.header.config is not None:
        yield from heading(run, look)
        return
    yield from hang(Text(run.title, BOLD), 0, look.width)
    yield Text(clean(f"{run.name} on {book.header.engine}"), DIM)


def story(book: Book, console: Console) -> Iterator[RenderableType]:
    """Tell the trace step by step; a long one around its violations."""
    look, run = look_of(console), run_of(book.header)
    yield from title_lines(book, look)
    if book.header.config is not None:
        yield from legend(run, look)
    shown = windows(book.first, book.last, book.violating)
    note = left_out(book.first, book.last, shown, book.violating)
    if note:
        yield Text()
        yield from hang(Text(note, BOLD), 0, look.width)
    narrator = Narrator(run, look)
    told = book.first
    for steps in shown:
        if steps.start > told:
            yield from narrator.flush()
            yield Text()
            yield Text(f"{look.signs.more:>7}  {count(steps.start - told, 'step')} left out", DIM)
        for step in steps:
            try:
                page = book.page(step)
            except LookupError:
                break
            for outcome in (page.played, *page.judged):
                yield from narrator.tell(outcome)
            yield from _chains(book, step, look)
        told = steps.stop
    yield from narrator.flush()
    yield from _ending(book, look)


def _chains(book: Book, step: int, look: Look) -> Iterator[Text]:
    """Yield the chain of each root that broke first in this step."""
    told = []
    for violation in book.page(step).played.fresh:
        chain = book.chain(step, violation)
        if chain is not None and chain.step == step and chain not in told:
            told.append(chain)
            yield from chain_lines(chain, look, indent=9)


def _ending(book: Book, look: Look) -> Iterator[Text]:
    verdict = book.contents.verdict
    yield Text()
    if book.note:
        yield from hang(Text(book.note, BAD), 0, look.width, deeper=2)
    if verdict is not None:
        held = "everything held" if verdict.held else "did not hold"
        sign, style = (look.signs.good, GOOD) if verdict.held else (look.signs.bad, BAD)
        also = f", {count(verdict.failures, 'expectation')} failed" if verdict.failures else ""
        text = (
            f"{sign} {held}: {count(verdict.steps, 'step')}, {count(verdict.violations, 'violation')}{also}"
        )
        ended = "" if verdict.ending == "complete" else f" ({verdict.ending})"
        yield from hang(Text(text + ended, style), 0, look.width, deeper=2)
    if book.header.command:
        yield reproduce_line(run_of(book.header), indent=0)


def step_story(book: Book, console: Console, step: int) -> Iterator[Text]:
    """Tell one step: every pane in full. Raises ``LookupError`` where it cannot be read."""
    look = look_of(console)
    yield from title_lines(book, look)
    yield Text(f"step {step} of {book.last}", BOLD)
    for line in overview(sight_of(book, book.page(step), book.num_invariants), look, None):
        line.rstrip()
        yield line
    if book.note:
        yield from hang(Text(book.note, BAD), 0, look.width, deeper=2)
