"""How things look: width, signs, colours, and text that wraps under its own indent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil

from rich.console import Console
from rich.text import Text

GUTTER = 9  # columns of the step number, and the indent of all that belongs to a step
BAD, GOOD, NEUTRAL, DIM, BOLD = "bold red", "green", "yellow", "dim", "bold"
STATE, RING = "cyan", "yellow"


@dataclass(frozen=True, slots=True)
class Signs:
    """The few characters beyond ASCII that a view draws with, and what stands in for them."""

    full: str = "▮"
    empty: str = "▯"
    state: str = "●"
    no_state: str = "○"
    good: str = "✓"
    bad: str = "✗"
    arrow: str = "→"
    times: str = "×"  # noqa: RUF001 - the sign for "times" is meant
    dot: str = "·"
    more: str = "⋮"
    cut: str = "…"
    fork: str = "├─"
    last: str = "└─"
    rail: str = "│ "


ASCII = Signs("#", ".", "*", "o", "ok", "X", "->", "x", "|", ":", "~", "+-", "`-", "| ")


@dataclass(frozen=True, slots=True)
class Look:
    """What a view needs to know of where it will be seen: its ``width`` in columns, and the signs."""

    width: int = 80
    signs: Signs = Signs()

    @property
    def room(self) -> int:
        """Columns right of the gutter."""
        return max(24, self.width - GUTTER)


def look_of(console: Console) -> Look:
    """Return the look for a console; plain ASCII where its encoding knows nothing else."""
    unicode = console.encoding.lower().startswith("utf")
    return Look(console.width, Signs() if unicode else ASCII)


def gauge(signs: Signs, filled: int, length: int, cells: int) -> Text:
    """Draw ``filled`` of ``length`` with at most ``cells`` signs: one each, scaled where there are more."""
    cells = min(length, cells)
    shown = min(cells, max(0, ceil(filled * cells / length)))
    return Text.assemble((signs.full * shown, RING), (signs.empty * (cells - shown), DIM))


def clean(text: str) -> str:
    """Return ``text`` without characters that a terminal would obey instead of show."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def shorten(signs: Signs, text: str, width: int) -> str:
    """Cut the middle out of a text that is wider than ``width``."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return text[: width - 1 - tail] + signs.cut + text[len(text) - tail :]


def count(number: int, noun: str) -> str:
    """``1 token``, ``2 tokens``, ``1,200 tokens``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def spans(numbers: Iterable[int], *, limit: int = 8) -> str:
    """Write numbers as ascending runs: ``2 3 5..9``; at most ``limit`` runs are spelled out."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [str(a) if a == b else f"{a} {b}" if b == a + 1 else f"{a}..{b}" for a, b in runs]
    return " ".join(words if len(words) <= limit else [*words[:limit], f"and {len(words) - limit} more runs"])


def hang(text: Text, indent: int, width: int, *, deeper: int = 0) -> Iterator[Text]:
    """Wrap ``text`` to ``width`` columns, every line indented, those after the first ``deeper`` still."""
    first = text.wrap(_measuring_console(), max(20, width - indent))[0]
    rest = text[len(first) :] if len(first) < len(text) else Text()
    first.rstrip()
    yield Text(" " * indent).append_text(first)
    rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :] if rest.plain.strip() else Text()
    for line in rest.wrap(_measuring_console(), max(20, width - indent - deeper)) if rest.plain else ():
        line.rstrip()
        yield Text(" " * (indent + deeper)).append_text(line)


def under_gutter(text: Text, look: Look, *, deeper: int = 2) -> Iterator[Text]:
    """Wrap ``text`` right of the gutter."""
    return hang(text, GUTTER, look.width, deeper=deeper)


def joined(parts: Iterable[Text | str], between: Text | str) -> Text:
    """Join texts and strings, keeping their styles."""
    glue = Text(between) if isinstance(between, str) else between
    return glue.join(Text(part) if isinstance(part, str) else part for part in parts)


def consecutive(numbers: Iterable[int]) -> bool:
    """Whether each number is its predecessor plus one."""
    return all(b == a + 1 for a, b in pairwise(numbers))


@lru_cache(maxsize=1)
def _measuring_console() -> Console:
    return Console(width=80, color_system=None)
