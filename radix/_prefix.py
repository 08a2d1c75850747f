"""Comparing a key with an edge, at the speed of tuple comparison rather than of a Python loop."""

from __future__ import annotations

from replaylife.radix.node import Tokens


def shared_len(edge: Tokens, key: Tokens, start: int, end: int, page_size: int) -> int:
    """The length of the common prefix of `edge` and `key[start:end]`: tokens, in whole pages.

    `len(edge)` and `end - start` are multiples of `page_size`. Whole equality, by far the most frequent
    answer, costs one slice; otherwise the first unequal page is found by bisection, every round comparing
    half of what the one before did: at most twice the work of one comparison, and no token loop.
    """
    whole = min(len(edge), end - start)
    if key[start : start + whole] == edge[:whole]:
        return whole
    equal, unequal = 0, whole // page_size  # pages [0, equal) agree, pages [equal, unequal) do not
    while unequal - equal > 1:
        middle = (equal + unequal) // 2
        lo, hi = equal * page_size, middle * page_size
        if key[start + lo : start + hi] == edge[lo:hi]:
            equal = middle
        else:
            unequal = middle
    return equal * page_size
