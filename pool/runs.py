"""Token sequences of a workload: runs of consecutive token ids, so that a block costs what one token does.

A request log says which blocks of tokens are equal, not what the tokens are. Giving block ``b`` of ``n``
tokens the ids ``b*n .. b*n + n - 1`` makes a prompt of thousands of tokens a few runs. Slices, comparisons
and digests then take time in the number of runs; the digest is, number for number, that of the tokens one
by one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import overload

MODULUS = (1 << 61) - 1
MULTIPLIER = 1_000_003_000_017
_INVERSE = pow(MULTIPLIER - 1, -1, MODULUS)


class Runs(Sequence[int]):
    """An immutable sequence of token ids, kept as maximal runs of consecutive ids.

    Equal sequences have equal runs, so equality and hash need not look at tokens. It compares equal only with
    another ``Runs``. ``_ends`` are the offsets at which the runs end, ``_firsts`` the first id of each.
    """

    __slots__ = ("_ends", "_firsts")

    def __init__(self, firsts: tuple[int, ...], ends: tuple[int, ...]) -> None:
        self._firsts, self._ends = firsts, ends

    @classmethod
    def of(cls, runs: Iterable[tuple[int, int]]) -> Runs:
        """Join runs ``(first id, number of tokens)``; adjacent ones become one, empty ones none."""
        firsts, ends, at, following = list[int](), list[int](), 0, -1
        for first, count in runs:
            if count < 1:
                continue
            at += count
            if first == following:
                ends[-1] = at
            else:
                firsts.append(first)
                ends.append(at)
            following = first + count
        return cls(tuple(firsts), tuple(ends))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Runs):
            return NotImplemented
        return self._ends == other._ends and self._firsts == other._firsts

    def __hash__(self) -> int:
        return hash((self._firsts, self._ends))

    def __iter__(self) -> Iterator[int]:
        for first, count in self.runs():
            yield from range(first, first + count)

    def __repr__(self) -> str:
        return f"Runs.of({list(self.runs())})"

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield ``(first id, number of tokens)`` of each run."""
        start = 0
        for first, end in zip(self._firsts, self._ends, strict=True):
            yield first, end - start
            start = end

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> int | Runs:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ValueError(f"step {step}: a slice of runs has step 1")
            return self.cut(start, stop)
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"token {index} of {len(self)}")
        return at + self.run_at(at)[2]

    def run_at(self, offset: int) -> tuple[int, int, int]:
        """Return ``(low, high, shift)``: tokens ``[low, high)`` around ``offset`` are offset + shift."""
        run = bisect_right(self._ends, offset)
        low = self._ends[run - 1] if run else 0
        return low, self._ends[run], self._firsts[run] - low

    def cut(self, start: int, stop: int) -> Runs:
        """Return tokens ``[start, stop)`` with ``0 <= start`` and ``stop <= len(self)``."""
        if start >= stop:
            return NOTHING
        ends = self._ends
        low = bisect_right(ends, start)
        high = bisect_right(ends, stop - 1, low)
        first = self._firsts[low] + start - (ends[low - 1] if low else 0)
        if low == high:
            return Runs((first,), (stop - start,))
        inner = [end - start for end in ends[low:high]]
        return Runs((first, *self._firsts[low + 1 : high + 1]), (*inner, stop - start))

    def onto(self, digest: int) -> int:
        """Return the digest of a sequence with digest ``digest`` followed by these tokens."""
        start = 0
        for first, end in zip(self._firsts, self._ends, strict=True):
            power, ones, ramp = _weights(end - start)
            digest = (digest * power + (first + 1) * ones + ramp) % MODULUS
            start = end
        return digest


@lru_cache(maxsize=65_536)
def _weights(count: int) -> tuple[int, int, int]:
    """The polynomial digest of ``count`` tokens ``a, a+1, ...`` is ``digest*power + (a+1)*ones + ramp``.

    ``ones`` is the sum of M^i for i < count, ``ramp`` that of j * M^(count-1-j): both geometric.
    """
    power = pow(MULTIPLIER, count, MODULUS)
    ones = (power - 1) * _INVERSE % MODULUS
    return power, ones, (ones - count) * _INVERSE % MODULUS


NOTHING = Runs((), ())
