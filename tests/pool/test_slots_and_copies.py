"""Slots handed out, cleared and copied: what the tensors hold afterwards, and what is left alone."""

from __future__ import annotations

import torch

from replaylife.pool import Copied, Gate, MambaPool

from .support import changed_slots, decode, filled, held, picture, records, small, tensor_pool


def test_an_allocated_slot_has_its_cursor_at_zero_on_host_and_device() -> None:
    pool = filled(tensor_pool(slots=2))
    assert pool.alloc() == 1
    decode(pool, 1, 3)
    assert (pool.pending(1), held(pool).cursors()) == (3, [0, 3])
    pool.free(1)
    assert (pool.pending(1), held(pool).cursors()) == (3, [0, 3]), "freeing leaves the cursor"
    assert pool.alloc() == 1
    assert (pool.pending(1), held(pool).cursors()) == (0, [0, 0])


def test_allocating_and_freeing_leave_every_other_tensor_alone() -> None:
    pool = filled(tensor_pool())
    before = picture(pool)
    slot = pool.alloc()
    assert slot == 1
    pool.free(slot)
    assert changed_slots(before, picture(pool)) == {}


def test_an_exhausted_pool_allocates_nothing_and_touches_nothing() -> None:
    pool = MambaPool(small(slots=2))
    pool.alloc()
    pool.touched.clear()
    assert pool.alloc() is None
    assert pool.touched == set()


def test_a_clear_zeroes_the_checkpoint_and_the_live_window_and_leaves_ring_and_cursor(gate: Gate) -> None:
    pool = filled(tensor_pool(gate=gate))
    decode(pool, 2, 2)
    before = picture(pool)
    pool.clear(2)
    after = picture(pool)
    assert changed_slots(before, after) == {name: {2} for name in ("temporal", "conv", "conv_checkpoint")}
    assert not any(bool(after[name][:, 2].any()) for name in ("temporal", "conv", "conv_checkpoint"))
    assert pool.pending(2) == 2


def test_a_copy_takes_temporal_and_the_saved_window_of_all_layers(gate: Gate) -> None:
    pool = filled(tensor_pool(gate=gate))
    before = picture(pool)
    pool.copy_from(2, 4)
    after = picture(pool)
    assert torch.equal(after["temporal"][:, 4], before["temporal"][:, 2])
    assert torch.equal(after["conv_checkpoint"][:, 4], before["conv_checkpoint"][:, 2])
    assert torch.equal(after["conv"][:, 4], before["conv_checkpoint"][:, 2])
    assert not torch.equal(before["conv_checkpoint"][:, 2], before["conv"][:, 2])
    assert all(bool(after["temporal"][layer, 4].any()) for layer in range(3))


def test_a_copy_leaves_its_source_every_ring_and_all_other_slots_bitwise_alone(gate: Gate) -> None:
    pool = filled(tensor_pool(gate=gate))
    before = picture(pool)
    pool.copy_from(2, 4)
    assert changed_slots(before, picture(pool)) == {
        name: {4} for name in ("temporal", "conv", "conv_checkpoint")
    }


def test_a_copy_resets_the_cursor_of_its_destination_and_not_of_its_source() -> None:
    pool = filled(tensor_pool())
    decode(pool, 2, 3)
    decode(pool, 4, 2)
    assert pool.copy_from(2, 4) == Copied(2, 4, pending=3, length=0)
    assert (pool.pending(2), pool.pending(4), held(pool).cursors()) == (3, 0, [0, 0, 3, 0, 0, 0])


def test_with_replayssm_off_a_copy_takes_the_live_window() -> None:
    pool = filled(tensor_pool(ring_length=None))
    before = picture(pool)
    pool.absorb(2, records(7, 8))
    assert pool.copy_from(2, 4) == Copied(2, 4, pending=0, length=2)
    after = picture(pool)
    assert changed_slots(before, after) == {"temporal": {4}, "conv": {4}}
    assert torch.equal(after["conv"][:, 4], before["conv"][:, 2])
