"""Which row of a batch is whose, from step to step."""

from __future__ import annotations

from replaylife.lifecycle.batch import BatchLayout, Row
from replaylife.lifecycle.request import Request


def rows(*names: str) -> list[Row]:
    return [Row(Request(n, [1, 2, 3], 2), ord(n) - 96, 2, 7, ord(n) - 97) for n in names]


def order(layout: BatchLayout, *names: str, pad_to: int | None = None) -> list[str]:
    return [row.request.id for row in layout.arrange(rows(*names), pad_to).rows]


def test_requests_keep_their_rows_while_nobody_leaves() -> None:
    layout = BatchLayout()
    assert order(layout, "a", "b", "c") == ["a", "b", "c"]
    assert order(layout, "c", "a", "b") == ["a", "b", "c"]


def test_the_last_row_takes_the_place_of_one_that_leaves() -> None:
    layout = BatchLayout()
    order(layout, "a", "b", "c", "d")
    assert order(layout, "b", "c", "d") == ["d", "b", "c"]
    assert order(layout, "c", "d", "e") == ["d", "c", "e"]


def test_what_a_row_carries_is_bound_to_its_request() -> None:
    layout = BatchLayout()
    layout.arrange(rows("a", "b", "c"), None)
    batch = layout.arrange(rows("b", "c"), None)
    assert [row.request.id for row in batch.rows] == ["c", "b"]
    assert batch.slots == (3, 2)
    assert batch.cursors == (2, 1)


def test_padding_rows_come_last_and_carry_slot_minus_one() -> None:
    batch = BatchLayout().arrange(rows("a", "b"), 4)
    assert batch.slots == (1, 2, -1, -1)
    assert batch.num_padding == 2
    assert batch.cursors[2:] == batch.tokens[2:] == batch.positions[2:] == (0, 0)


def test_a_batch_as_large_as_asked_for_has_no_padding() -> None:
    assert BatchLayout().arrange(rows("a", "b"), 2).num_padding == 0
    assert BatchLayout().arrange(rows("a", "b"), None).num_padding == 0
