"""Our part: what SGLang's GPU kernels would write, written with torch so that the tensors can be read again.

A component's tensors spell which tokens it has absorbed: length and digest of a
:class:`~replaylife.pool.Fold`, in digits of base 256, which every dtype holds exactly. Whatever copies,
clears or keeps a slot is SGLang's code and moves the digits along, so the pool's own tensors say where each
slot stands. A convolution window has forgotten all but its last inputs; what is spelled is everything that
has gone through it: a window that once was wrong stays wrong, as it does in the layers above the first.
A ring record spells request, position and token. Every method stands for one kernel, named with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from replaylife.pool import EMPTY, Fold, Record

BASE, LENGTH_DIGITS, DIGITS = 256, 4, 12


class Row(NamedTuple):
    """One row of a forward: ``tokens`` of request ``number`` from ``position`` on, in ``slot``."""

    number: int
    slot: int
    position: int
    tokens: tuple[int, ...]


class Kernels:
    """Reads and writes the tensors of one ``MambaPool`` the way its kernels do.

    ``names`` are the requests by number, from 1: records carry the number.
    """

    def __init__(self, pool: Any, names: Sequence[str]) -> None:
        self._cache, self._names = pool.mamba_cache, names
        self.ring_length: int | None = (
            None if pool.replayssm_write_pos is None else pool.linear_replayssm_cache_len
        )

    # -- reading -------------------------------------------------------------------------------------

    def temporal(self, slot: int) -> Fold:
        """Return what temporal of ``slot`` has absorbed."""
        return _read(self._cache.temporal[0, slot])

    def conv(self, slot: int) -> Fold:
        """Return where the convolution window of ``slot`` stands."""
        return _read(self._cache.conv[0][0, slot])

    def ring(self, slot: int, count: int) -> tuple[Record | None, ...]:
        """Return the first ``count`` records of the ring of ``slot``."""
        return tuple(self._record(slot, index) for index in range(count))

    def _record(self, slot: int, index: int) -> Record | None:
        number, position, token = (
            int(part) for part in self._cache.replayssm_d[0, slot, 0, index, :3].tolist()
        )
        return Record(self._names[number - 1], position, token) if number else None

    # -- writing -------------------------------------------------------------------------------------

    def extend(self, row: Row, *, initial: bool) -> None:
        """``causal_conv1d_fn`` and the chunked scan of ``forward_extend``, both in place.

        Both start from what the slot holds; without ``initial`` (no prefix) the convolution starts from zero.
        The ring is not read: an extend kernel knows temporal only.
        """
        conv = self.conv(row.slot) if initial else EMPTY
        self._put(self._cache.conv[0], row.slot, conv.after(row.tokens))
        self._put(self._cache.temporal, row.slot, self.temporal(row.slot).after(row.tokens))

    def decode(
        self, rows: Sequence[Row], cursors: Sequence[int] | None, flush: Sequence[int] | None
    ) -> list[int]:
        """``causal_conv1d_update`` and the (replay) decode kernel of ``forward_decode``; one token a row.

        ``cursors`` and ``flush`` are those of SGLang's forward metadata. A row whose ring is full after its
        token, or that must flush, is folded; returns for each row how many records that took.
        """
        folded = []
        for index, row in enumerate(rows):
            self._put(self._cache.conv[0], row.slot, self.conv(row.slot).after(row.tokens))
            if cursors is None or self.ring_length is None:
                self._put(self._cache.temporal, row.slot, self.temporal(row.slot).after(row.tokens))
                folded.append(0)
                continue
            self._write_record(row, cursors[index])
            due = cursors[index] == self.ring_length - 1 or bool(flush is not None and flush[index])
            folded.append(self._fold(row.slot, cursors[index] + 1) if due else 0)
        return folded

    def _write_record(self, row: Row, index: int) -> None:
        ring = self._cache.replayssm_d
        ring[0, row.slot, 0, index, :3] = ring.new_tensor([row.number, row.position, row.tokens[0]])

    def _fold(self, slot: int, count: int) -> int:
        records = self.ring(slot, count)
        tokens = [record.token for record in records if record is not None]
        self._put(self._cache.temporal, slot, self.temporal(slot).after(tokens))
        return count

    def snapshot(self, slot: int, dst: int, tokens: Sequence[int]) -> None:
        """``_track_mamba_state_extend``: state and window after ``tokens`` of a chunk, before it is run."""
        self._put(self._cache.temporal, dst, self.temporal(slot).after(tokens))
        self._put(self._cache.conv[0], dst, self.conv(slot).after(tokens))

    def track(self, slot: int, dst: int) -> None:
        """``_track_mamba_state_decode``: copy temporal and window of ``slot`` as they stand."""
        for tensor in (self._cache.temporal, self._cache.conv[0]):
            tensor[:, dst] = tensor[:, slot]

    def _put(self, tensor: Any, slot: int, fold: Fold) -> None:
        """Spell ``fold`` in every layer of ``tensor[:, slot]``."""
        place = tensor[:, slot]
        flat = place.new_zeros(place[0].numel())
        flat[:DIGITS] = flat.new_tensor(_digits(fold))
        tensor[:, slot] = flat.view(place[0].shape)


def _digits(fold: Fold) -> list[int]:
    number, digits = fold.length + (fold.digest << 8 * LENGTH_DIGITS), []
    for _ in range(DIGITS):
        number, digit = divmod(number, BASE)
        digits.append(digit)
    return digits


def _read(place: Any) -> Fold:
    digits = [int(digit) for digit in place.reshape(-1)[:DIGITS].tolist()]
    number = sum(digit << 8 * index for index, digit in enumerate(digits))
    return Fold(number & (1 << 8 * LENGTH_DIGITS) - 1, number >> 8 * LENGTH_DIGITS)
