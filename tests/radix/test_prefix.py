"""The common prefix of an edge and a part of a key."""

from __future__ import annotations

from itertools import product

import pytest

from replaylife.radix._prefix import shared_len


def _counted_one_by_one(edge: tuple[int, ...], part: tuple[int, ...], page: int) -> int:
    same = 0
    for mine, theirs in zip(edge, part, strict=False):
        if mine != theirs:
            break
        same += 1
    return same - same % page


@pytest.mark.parametrize("page", [1, 2, 4])
def test_every_pair_of_short_tuples_agrees_with_counting_one_by_one(page: int) -> None:
    cases = 0
    words = [word for n in (page, 2 * page, 8) for word in product((0, 1), repeat=n) if n <= 8]
    words = words[:: max(1, len(words) // 60)]
    for edge, part in product(words, words):
        key = (9, 9, *part, 9)
        assert shared_len(edge, key, 2, 2 + len(part), page) == _counted_one_by_one(edge, part, page)
        cases += 1
    assert cases >= 3_000


def test_every_place_of_the_first_difference_is_found_in_a_long_edge() -> None:
    edge = tuple(range(257))
    for place in range(257):
        other = (*edge[:place], -1, *edge[place + 1 :])
        assert shared_len(edge, other, 0, 257, 1) == place
        assert shared_len(edge[:256], other, 0, 256, 4) == min(place - place % 4, 256)
    assert shared_len(edge, edge, 0, 257, 1) == 257


def test_tokens_beyond_the_end_do_not_count() -> None:
    edge = tuple(range(100))
    assert shared_len(edge, edge, 0, 40, 1) == 40


def test_equal_tokens_that_are_other_objects_are_equal() -> None:
    edge = tuple(range(10_000, 30_000))
    again = tuple(int(str(token)) for token in edge)
    assert edge[0] is not again[0]
    assert shared_len(edge, again, 0, 20_000, 1) == 20_000
    assert shared_len(edge, (*again[:15_000], 0), 0, 15_001, 1) == 15_000
