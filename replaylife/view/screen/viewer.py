"""The loop: draw, take a key, go there."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from replaylife.view.book import Book, run_of
from replaylife.view.look import look_of
from replaylife.view.screen.frame import Framing, frame
from replaylife.view.screen.navigator import After, Navigator
from replaylife.view.screen.terminal import Screen, opened


def browse(screen: Screen, navigator: Navigator, framing: Framing) -> After:
    """Show pages until the reader quits, or waits for a step that a run has yet to take."""
    while True:
        width, height = screen.measure()
        look = replace(framing.look, width=width)
        screen.show(frame(navigator, replace(framing, look=look, height=height)))
        key = screen.key()
        after: After = "look" if key == "resize" else navigator.press(key)
        if after != "look":
            return after


def framing_of(book: Book, console: Console, height: int = 24) -> Framing:
    """Return what frames of a trace need."""
    return Framing(run_of(book.header), book.num_invariants, look_of(console), height)


def view(book: Book, console: Console, step: int) -> None:
    """Show a trace full-screen, at ``step``, until the reader quits."""
    with opened(console) as screen:
        browse(screen, Navigator(book, step), framing_of(book, console))
