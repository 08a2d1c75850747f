"""A pool without tensors keeps the same books as one with them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from replaylife.pool import Gate, MambaPool, Record

from .support import decode, filled, held, small, tensor_pool

STEPS = 600


class _Driver:
    """Does the same random operations to two pools."""

    def __init__(self, bare: MambaPool, full: MambaPool, seed: int) -> None:
        self._pools = (bare, full)
        self._random = random.Random(seed)
        self._position = 0
        self.ran: Counter[str] = Counter()

    def step(self, number: int) -> None:
        name = self._random.choice(
            ["alloc", "free", "clear", "copy", "fold", "fold_into", "save", "rewind", "absorb"]
            + ["decode"] * 6
        )
        action = getattr(self, f"_{name}")()
        if action is None:
            return
        bare, full = self._pools
        bare.step = full.step = number
        assert action(bare) == action(full)
        self.ran[name] += 1

    def _slots(self, count: int) -> list[int]:
        return self._random.sample(range(1, self._pools[0].shape.slots), count)

    def _records(self, count: int) -> tuple[Record, ...]:
        self._position += count
        return tuple(
            Record(f"r{self._random.randrange(3)}", self._position + i, self._random.randrange(256))
            for i in range(count)
        )

    def _alloc(self) -> Callable[[MambaPool], object]:
        return lambda pool: pool.alloc()

    def _free(self) -> Callable[[MambaPool], object] | None:
        taken = sorted(set(range(1, 6)) - set(self._pools[0].allocator.free_list))
        if not taken:
            return None
        slot = self._random.choice(taken)
        return lambda pool: pool.free(slot)

    def _clear(self) -> Callable[[MambaPool], object]:
        (slot,) = self._slots(1)
        return lambda pool: pool.clear(slot)

    def _copy(self) -> Callable[[MambaPool], object]:
        src, dst = self._slots(2)
        return lambda pool: pool.copy_from(src, dst)

    def _fold(self) -> Callable[[MambaPool], object]:
        slots = self._slots(3)
        return lambda pool: pool.fold(slots)

    def _fold_into(self) -> Callable[[MambaPool], object] | None:
        src, dst = self._slots(2)
        if self._pools[0].write_pos is None:
            return None
        count = self._random.randint(0, self._pools[0].pending(src))
        return lambda pool: pool.fold_into([src], [count], [dst])

    def _save(self) -> Callable[[MambaPool], object]:
        (slot,) = self._slots(1)
        return lambda pool: pool.save_conv(slot)

    def _rewind(self) -> Callable[[MambaPool], object]:
        (slot,) = self._slots(1)
        return lambda pool: pool.rewind_conv(slot)

    def _absorb(self) -> Callable[[MambaPool], object]:
        (slot,), records = self._slots(1), self._records(self._random.randint(1, 4))
        return lambda pool: pool.absorb(slot, records)

    def _decode(self) -> Callable[[MambaPool], object]:
        rows = [(slot, self._records(1)[0]) for slot in self._slots(2)]

        def act(pool: MambaPool) -> object:
            pool.append(rows)
            pool.advance(slot for slot, _ in rows)
            return pool.fold(slot for slot, _ in rows if pool.pending(slot) == 5)

        return act


def _compare(bare: MambaPool, full: MambaPool) -> None:
    assert bare.ledger.slots == full.ledger.slots
    assert bare.write_pos == full.write_pos == held(full).cursors()
    assert bare.allocator.free_list == full.allocator.free_list
    assert bare.touched == full.touched


def _drive(kind: type[MambaPool], *, gate: Gate, ring_length: int | None, seed: int) -> _Driver:
    shape = small(gate=gate, ring_length=ring_length)
    bare = MambaPool(shape, log_records=True)
    full = filled(tensor_pool(kind, gate=gate, ring_length=ring_length))
    full.ledger.logging = True
    driver = _Driver(bare, full, seed)
    for number in range(1, STEPS + 1):
        driver.step(number)
        _compare(bare, full)
    return driver


@pytest.mark.parametrize("ring_length", [5, None], ids=["replayssm", "off"])
def test_both_pools_hold_the_same_books_after_every_operation(gate: Gate, ring_length: int | None) -> None:
    ran = _drive(MambaPool, gate=gate, ring_length=ring_length, seed=11).ran
    assert ran.total() >= 500
    expected = {"alloc", "free", "clear", "copy", "fold", "save", "rewind", "absorb", "decode"}
    assert set(ran) == expected | ({"fold_into"} if ring_length else set())
    assert min(ran.values()) >= 15, ran


class _CopyKeepsCursor(MambaPool):
    def copy_from(self, src: int, dst: int):  # type: ignore[no-untyped-def]
        pending = self.pending(dst)
        copied = super().copy_from(src, dst)
        self._set_cursor(dst, pending)
        return copied


class _FoldForgetsWindow(MambaPool):
    def save_conv(self, slot: int) -> None:
        pass


class _CursorOnlyOnHost(MambaPool):
    def _set_cursor(self, slot: int, value: int) -> None:
        if self.write_pos is not None:
            self.write_pos[slot] = value
            self.touched.add(slot)


class _AdvancesTwice(MambaPool):
    def advance(self, slots):  # type: ignore[no-untyped-def]
        for slot in slots:
            super().advance([slot])
            super().advance([slot])


@pytest.mark.parametrize("kind", [_CopyKeepsCursor, _FoldForgetsWindow, _CursorOnlyOnHost, _AdvancesTwice])
def test_a_pool_with_one_method_wrong_is_told_from_the_other(kind: type[MambaPool]) -> None:
    with pytest.raises(AssertionError):
        _drive(kind, gate="gdn", ring_length=5, seed=11)


def test_a_ring_has_room_for_its_length_and_no_more() -> None:
    pool = MambaPool(small(ring_length=5))
    decode(pool, 1, 5)
    assert pool.pending(1) == 5
    with pytest.raises(IndexError):
        decode(pool, 1, 1)
