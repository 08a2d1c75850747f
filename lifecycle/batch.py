"""Which row of a batch is whose, from step to step."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from replaylife.lifecycle.request import Request

PADDING_SLOT = -1


class Row(NamedTuple):
    """One decode row: ``token`` goes in at ``position``; ``cursor`` is write_pos of ``slot`` before it."""

    request: Request
    slot: int
    position: int
    token: int
    cursor: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A decode batch as the kernels see it: one entry per row, padding rows (slot -1) at the end.

    ``rows`` are the real ones, in row order; the lists are what is copied into the static buffers.
    """

    rows: tuple[Row, ...]
    slots: tuple[int, ...]
    positions: tuple[int, ...]
    tokens: tuple[int, ...]
    cursors: tuple[int, ...]

    @property
    def num_padding(self) -> int:
        """Rows that must do nothing."""
        return len(self.slots) - len(self.rows)


class WindowRow(NamedTuple):
    """One verify window: ``tokens`` go in from ``position`` on; ``cursor`` is write_pos of ``slot``."""

    request: Request
    slot: int
    position: int
    tokens: tuple[int, ...]
    cursor: int


@dataclass(frozen=True, slots=True)
class WindowBatch:
    """A batch of verify windows as the kernels see it, one entry per row.

    Rows of different lengths are padded to the longest: row i of ``tokens`` and ``positions`` counts up to
    ``lengths[i]``.
    """

    rows: tuple[WindowRow, ...]
    slots: tuple[int, ...]
    cursors: tuple[int, ...]
    lengths: tuple[int, ...]
    tokens: tuple[tuple[int, ...], ...]
    positions: tuple[tuple[int, ...], ...]


class BatchLayout:
    """A persistent batch: a request keeps its row until one before it leaves.

    The row of a request that leaves is taken by the last one, so that rows stay dense; what a row carries is
    bound to its request and written anew every step.
    """

    def __init__(self) -> None:
        self._order: list[str] = []

    def arrange(self, rows: Sequence[Row], pad_to: int | None) -> Batch:
        """Give each of ``rows`` its place and pad to ``pad_to`` rows."""
        present = {row.request.id: row for row in rows}
        self._compact(present.keys())
        self._order.extend(name for name in present if name not in self._order)
        ordered = tuple(present[name] for name in self._order)
        padding = max(0, (pad_to or 0) - len(ordered))
        return Batch(
            rows=ordered,
            slots=(*(row.slot for row in ordered), *[self._padding_slot()] * padding),
            positions=(*(row.position for row in ordered), *[0] * padding),
            tokens=(*(row.token for row in ordered), *[0] * padding),
            cursors=(*self._cursors(ordered), *[0] * padding),
        )

    def _compact(self, present: Collection[str]) -> None:
        """Fill the row of each request that has left with the last row."""
        row = 0
        while row < len(self._order):
            if self._order[row] in present:
                row += 1
                continue
            last = self._order.pop()
            if row < len(self._order):
                self._order[row] = last

    def _cursors(self, ordered: Sequence[Row]) -> list[int]:
        """The cursor of each row's request."""
        return [row.cursor for row in ordered]

    def _padding_slot(self) -> int:
        """The slot of a row that must do nothing."""
        return PADDING_SLOT

    def arrange_windows(self, rows: Sequence[WindowRow]) -> WindowBatch:
        """Pad the windows to the longest; the rows stay in their order, apart from those of decode steps."""
        longest = max(len(row.tokens) for row in rows)
        return WindowBatch(
            rows=tuple(rows),
            slots=tuple(row.slot for row in rows),
            cursors=tuple(row.cursor for row in rows),
            lengths=tuple(len(row.tokens) for row in rows),
            tokens=tuple((*row.tokens, *[0] * (longest - len(row.tokens))) for row in rows),
            positions=tuple(
                (*range(row.position, row.position + len(row.tokens)), *[0] * (longest - len(row.tokens)))
                for row in rows
            ),
        )
