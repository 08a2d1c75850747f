"""Tables as wide as what is in them, so that they fit a terminal of 80 columns where that can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def columns(rows: Sequence[Sequence[str]], num_left: int = 0, gap: int = 2) -> Iterator[str]:
    """Yield a line a row, cells to the right but for the first ``num_left``; all rows have as many cells."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if index < num_left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield (" " * gap).join(cells).rstrip()


def heads(names: Sequence[str]) -> list[list[str]]:
    """Return two header rows: names of two words stand in two lines, ``peak`` over ``slots``."""
    split = [name.replace("_", " ").rpartition(" ") for name in names]
    return [[before for before, _, _ in split], [after for _, _, after in split]]
