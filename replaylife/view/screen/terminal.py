"""The terminal: keys as they are pressed, the alternate screen, and its size whenever it changes."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from rich.console import Console, Group
from rich.text import Text

ESCAPES = {
    "[A": "up", "[B": "down", "[C": "right", "[D": "left", "OA": "up", "OB": "down", "OC": "right",
    "OD": "left", "[H": "home", "[F": "end", "OH": "home", "OF": "end", "[1~": "home", "[4~": "end",
    "[7~": "home", "[8~": "end", "[5~": "pgup", "[6~": "pgdn", "[Z": "backtab",
}  # fmt: skip
PLAIN = {
    "\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace", "\x08": "backspace",
    "\x04": "ctrl-d", "\x1b": "esc",
}  # fmt: skip
LINGER = 0.05  # seconds that the rest of an escape sequence may take


def keys_in(text: str) -> Iterator[str]:
    """Yield the names of the keys that a terminal has sent; what is no key is left out."""
    while text:
        size = 1
        if text[0] == "\x1b" and len(text) > 1 and text[1] in "[O":
            size = next(
                (i + 1 for i in range(2, len(text)) if text[i].isalpha() or text[i] == "~"), len(text)
            )
            key = ESCAPES.get(text[1:size], "")
        else:
            key = PLAIN.get(text[0], text[0] if text[0].isprintable() else "")
        text = text[size:]
        if key:
            yield key


def is_interactive() -> bool:
    """Whether there is a terminal to draw on and one to take keys from."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


class Screen:
    """A terminal in raw mode that shows frames and gives keys. Made by :func:`opened`."""

    def __init__(self, console: Console, wake: int) -> None:
        self.console = console
        self._wake = wake
        self._waiting: list[str] = []

    def measure(self) -> tuple[int, int]:
        """Return columns and lines of the terminal as it is now."""
        try:
            width, height = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            width, height = 80, 24
        self.console.size = (width or 80, height or 24)
        return width or 80, height or 24

    def show(self, lines: Sequence[Text]) -> None:
        """Draw a frame."""
        self.console.update_screen(Group(*lines))

    def key(self) -> str:
        """Wait for a key and return its name; ``resize`` when the terminal has another size."""
        while not self._waiting:
            ready, _, _ = select.select([sys.stdin.fileno(), self._wake], [], [])
            if self._wake in ready:
                os.read(self._wake, 1024)
                return "resize"
            text = os.read(sys.stdin.fileno(), 1024)
            if not text:
                return "ctrl-d"
            while text[-1:] == b"\x1b" or text[-2:] in (b"\x1b[", b"\x1bO"):
                if not select.select([sys.stdin.fileno()], [], [], LINGER)[0]:
                    break
                text += os.read(sys.stdin.fileno(), 1024)
            self._waiting += keys_in(text.decode("utf-8", "ignore"))
        return self._waiting.pop(0)


@contextmanager
def opened(console: Console) -> Iterator[Screen]:
    """Take the terminal over, and give it back as it was, however that ends."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    raw = termios.tcgetattr(descriptor)
    raw[0] &= ~(termios.ICRNL | termios.IXON)
    raw[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)  # signals stay: Ctrl-C ends a long run
    raw[6][termios.VSUSP] = raw[6][termios.VQUIT] = b"\0"  # a stopped program would keep the screen
    awake, wake = os.pipe()
    os.set_blocking(wake, False)

    def resized(_number: int, _frame: FrameType | None) -> None:
        os.write(wake, b"r")

    old = signal.signal(signal.SIGWINCH, resized)
    try:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, raw)
        with console.screen(hide_cursor=True):
            yield Screen(console, awake)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, old)
        os.close(awake)
        os.close(wake)
