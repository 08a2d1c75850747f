"""Cursors, convolution windows, and the books of what a forward has written."""

from __future__ import annotations

from copy import deepcopy

import torch

from replaylife.pool import EMPTY, MambaPool, Record

from .support import changed_slots, decode, filled, held, picture, records, small, tensor_pool


def test_a_save_moves_the_saved_window_to_the_live_one() -> None:
    pool = filled(tensor_pool())
    before = picture(pool)
    pool.save_conv(3)
    after = picture(pool)
    assert changed_slots(before, after) == {"conv_checkpoint": {3}}
    assert torch.equal(after["conv_checkpoint"][:, 3], before["conv"][:, 3])


def test_a_rewind_moves_the_live_window_to_the_saved_one() -> None:
    pool = filled(tensor_pool())
    before = picture(pool)
    pool.rewind_conv(3)
    after = picture(pool)
    assert changed_slots(before, after) == {"conv": {3}}
    assert torch.equal(after["conv"][:, 3], before["conv_checkpoint"][:, 3])


def test_with_replayssm_off_there_is_no_window_to_save_or_rewind() -> None:
    pool = filled(tensor_pool(ring_length=None))
    before, ledger = picture(pool), deepcopy(pool.ledger)
    pool.save_conv(3)
    pool.rewind_conv(3)
    assert changed_slots(before, picture(pool)) == {}
    assert pool.ledger.slots == ledger.slots


def test_the_cursor_advances_once_per_distinct_slot() -> None:
    pool = filled(tensor_pool())
    before = picture(pool)
    pool.advance([3, 1, 3, 3])
    assert pool.write_pos == held(pool).cursors() == [0, 1, 0, 1, 0, 0]
    assert changed_slots(before, picture(pool)) == {"write_pos": {1, 3}}
    pool.advance([3])
    assert pool.write_pos == held(pool).cursors() == [0, 1, 0, 2, 0, 0]


def test_with_replayssm_off_there_is_no_cursor_to_advance_and_nothing_pends() -> None:
    pool = filled(tensor_pool(ring_length=None))
    before = picture(pool)
    decode(pool, 3, 2)
    assert (pool.write_pos, pool.pending(3), pool.fold([3])) == (None, 0, ())
    assert changed_slots(before, picture(pool)) == {}


def test_with_replayssm_off_a_decode_step_is_absorbed_at_once() -> None:
    off, on = MambaPool(small(ring_length=None)), MambaPool(small())
    for pool in (off, on):
        decode(pool, 3, 2)
    assert off.ledger.slots[3].temporal == EMPTY.after((100, 101))
    assert on.ledger.slots[3].temporal == EMPTY
    assert on.ledger.slots[3].ring[:2] == list(records(100, 101))


def test_a_prefill_chunk_saves_the_window_with_the_state() -> None:
    pool = filled(tensor_pool())
    pool.step = 8
    pool.absorb(3, records(5, 6))
    entry = pool.ledger.slots[3]
    assert entry.temporal == entry.conv == entry.conv_checkpoint == EMPTY.after((5, 6))
    assert entry.written == 8
    assert torch.equal(picture(pool)["conv_checkpoint"][:, 3], held(pool).conv[:, 3])


def test_an_append_goes_where_the_cursor_stands() -> None:
    pool = MambaPool(small())
    decode(pool, 3, 2)
    pool.append([(3, Record("other", 9, 42))])
    assert pool.ledger.slots[3].ring == [*records(100, 101), Record("other", 9, 42), None, None]
    assert pool.pending(3) == 2, "only advance moves the cursor"


def test_what_changed_is_announced() -> None:
    pool = filled(tensor_pool())
    decode(pool, 3, 2)
    announced = []
    for change in (
        lambda: pool.clear(1),
        lambda: pool.copy_from(1, 2),
        lambda: pool.fold([1, 2, 3]),
        lambda: pool.fold_into([3], [1], [4]),
        lambda: pool.save_conv(5),
        lambda: pool.rewind_conv(4),
        lambda: pool.advance([2]),
        lambda: pool.absorb(1, records(1)),
        lambda: pool.append([(2, records(1)[0])]),
        lambda: pool.reset_cursor(5),
    ):
        pool.touched.clear()
        change()
        announced.append(set(pool.touched))
    assert announced == [{1}, {2}, {3}, {4}, {5}, {4}, {2}, {1}, {2}, {5}]
