"""The reply of a finished request and, where it differs, the cold run's beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from replaylife.lifecycle.events import Finished
from replaylife.view.look import BAD, DIM, GOOD, GUTTER, Look, count

LABEL = 10
MAX_BLOCKS = 4


def reply_lines(event: Finished, look: Look) -> Iterator[Text]:
    """Yield the reply in rows of tokens; rows that differ from the cold run's stand above it, marked."""
    reply, cold = event.reply, event.cold_reply
    wrong = [] if cold is None else _differing(reply, cold)
    both = (*reply, *(cold or ()))
    width = max((len(str(token)) for token in both), default=1) + 1
    per_row = max(1, (look.width - GUTTER - LABEL) // width)
    starts = range(0, max(len(reply), len(cold or ())), per_row)
    for block, start in enumerate(starts):
        if block == MAX_BLOCKS:
            yield _row("", [f"and {count(len(reply) - start, 'more token')}"], DIM)
            break
        part = slice(start, start + per_row)
        yield _tokens("" if block else "reply", reply[part], start, wrong, width)
        if wrong and cold is not None:
            yield _tokens("" if block else "cold run", cold[part], start, wrong, width, style=GOOD)
            yield _marks(start, min(per_row, len(reply) - start), wrong, width)
    yield from _comparison(event, wrong, look)


def _differing(reply: Sequence[int], cold: Sequence[int]) -> list[int]:
    length = max(len(reply), len(cold))
    return [i for i in range(length) if i >= len(reply) or i >= len(cold) or reply[i] != cold[i]]


def _row(label: str, cells: Sequence[str], style: str) -> Text:
    return Text.assemble(" " * GUTTER, (label.ljust(LABEL), DIM), (" ".join(cells), style))


def _tokens(
    label: str, tokens: Sequence[int], start: int, wrong: Sequence[int], width: int, style: str = BAD
) -> Text:
    text = Text.assemble(" " * GUTTER, (label.ljust(LABEL), DIM))
    differing = set(wrong)
    for index, token in enumerate(tokens, start):
        text.append(f"{token:>{width - 1}}", style if index in differing else "none").append(" ")
    text.rstrip()
    return text


def _marks(start: int, length: int, wrong: Sequence[int], width: int) -> Text:
    """A row that marks the differing tokens, so that they show without colour too."""
    differing = set(wrong)
    cells = [
        ("^" * (width - 1) if i in differing else "").rjust(width - 1) for i in range(start, start + length)
    ]
    text = _row("", cells, "red")
    text.rstrip()
    return text


def _comparison(event: Finished, wrong: Sequence[int], look: Look) -> Iterator[Text]:
    if event.cold_reply is None:
        return
    margin = " " * (GUTTER + LABEL)
    if not wrong:
        yield Text.assemble(margin, (f"{look.signs.good} the cold run replies the same", GOOD))
        return
    tokens = f"{len(wrong)} of {count(len(event.reply), 'token')}"
    first = f"the first is reply token {wrong[0] + 1}"
    yield Text.assemble(margin, (f"{look.signs.bad} {tokens} differ, {first}", BAD))
