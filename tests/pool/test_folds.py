"""Folds: which slots and tensors they change, in how many launches, to which state."""

from __future__ import annotations

import pytest
import torch

from replaylife.pool import EMPTY, Folded, Gate, MambaPool

from .support import changed_slots, decode, filled, held, picture, tensor_pool


def _replayed(pool: MambaPool, slot: int, count: int) -> torch.Tensor:
    """The state after ``count`` records, one after the other in float64: ``S = S Diag(exp g) + d k^T``."""
    tensors = held(pool)
    assert tensors.ring_d is not None
    assert tensors.ring_k is not None
    assert tensors.ring_g is not None
    state = tensors.temporal[:, slot].double()  # [layers, HV, V, K]
    for index in range(count):
        gate = tensors.ring_g[:, slot, :, index].double()
        gate = gate[..., None] if gate.dim() == 2 else gate
        keys = tensors.ring_k[:, slot, :, index].double().repeat_interleave(2, dim=1)  # [layers, HV, K]
        d = tensors.ring_d[:, slot, :, index].double()
        state = state * gate.exp()[:, :, None, :] + d[..., None] * keys[:, :, None, :]
    return state


def _error(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.double() - expected).norm() / expected.norm())


def test_a_fold_touches_only_the_slots_with_pending_records(gate: Gate) -> None:
    pool = filled(tensor_pool(gate=gate))
    decode(pool, 1, 2)
    decode(pool, 4, 5)
    before = picture(pool)
    folded = pool.fold([1, 2, 3, 4])
    assert folded == (Folded(1, 2, 2), Folded(4, 5, 5))
    assert changed_slots(before, picture(pool)) == {
        name: {1, 4} for name in ("temporal", "conv_checkpoint", "write_pos")
    }


def test_a_fold_is_the_serial_recurrence_over_exactly_the_pending_records(gate: Gate) -> None:
    pool = filled(tensor_pool(gate=gate))
    decode(pool, 1, 2)
    decode(pool, 4, 5)
    expected = {slot: [_replayed(pool, slot, count) for count in (0, 1, 2, 4, 5)] for slot in (1, 4)}
    pool.fold([1, 4])
    none, one, two, four, five = expected[1]
    assert _error(held(pool).temporal[:, 1], two) < 1e-6
    assert min(_error(held(pool).temporal[:, 1], other) for other in (none, one, four, five)) > 1e-2
    assert _error(held(pool).temporal[:, 4], expected[4][4]) < 1e-6


def test_a_fold_of_all_layers_and_slots_is_one_launch(gate: Gate) -> None:
    pool = filled(tensor_pool(gate=gate))
    for slot in (1, 2, 5):
        decode(pool, slot, slot)
    pool.fold([1, 2, 5])
    assert held(pool).kernels.launches == {"fold[torch]": 1}


def test_a_fold_of_nothing_launches_nothing() -> None:
    pool = filled(tensor_pool())
    assert pool.fold([1, 2]) == pool.fold([]) == ()
    assert not held(pool).kernels.launches
    decode(pool, 1, 1)
    pool.fold([1, 2])
    assert held(pool).kernels.launches == {"fold[torch]": 1}


def test_a_slot_named_twice_folds_once() -> None:
    twice, once = filled(tensor_pool()), filled(tensor_pool())
    for pool, slots in ((twice, [3, 3]), (once, [3])):
        decode(pool, 3, 2)
        assert pool.fold(slots) == (Folded(3, 2, 2),)
    assert changed_slots(picture(twice), picture(once)) == {}


def test_a_fold_saves_the_live_window_and_leaves_it(gate: Gate) -> None:
    pool = filled(tensor_pool(gate=gate))
    decode(pool, 3, 2)
    live = held(pool).conv[:, 3].clone()
    assert not torch.equal(picture(pool)["conv_checkpoint"][:, 3], live)
    pool.fold([3])
    assert torch.equal(picture(pool)["conv_checkpoint"][:, 3], live)
    assert torch.equal(held(pool).conv[:, 3], live)


def test_a_fold_resets_the_cursor_on_host_and_device() -> None:
    pool = filled(tensor_pool())
    decode(pool, 3, 2)
    decode(pool, 5, 4)
    assert pool.write_pos == held(pool).cursors() == [0, 0, 0, 2, 0, 4]
    pool.fold([3])
    assert pool.write_pos == held(pool).cursors() == [0, 0, 0, 0, 0, 4]


def test_a_second_fold_changes_nothing() -> None:
    pool = filled(tensor_pool())
    decode(pool, 3, 2)
    pool.fold([3])
    before = picture(pool)
    assert pool.fold([3]) == ()
    assert changed_slots(before, picture(pool)) == {}


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_fold_into_another_slot_changes_temporal_there_and_nothing_else(gate: Gate, count: int) -> None:
    pool = filled(tensor_pool(gate=gate))
    decode(pool, 2, 3)
    expected, before = _replayed(pool, 2, count), picture(pool)
    pool.fold_into([2], [count], [4])
    assert changed_slots(before, picture(pool)) == {"temporal": {4}}
    assert _error(held(pool).temporal[:, 4], expected) < 1e-6
    assert pool.pending(2) == 3
    assert pool.ledger.slots[4].temporal == EMPTY.after(range(100, 100 + count))


def test_a_fold_into_several_slots_pairs_sources_counts_and_destinations() -> None:
    pool = filled(tensor_pool())
    decode(pool, 1, 3)
    decode(pool, 2, 3, first=200)
    expected = [_replayed(pool, 1, 2), _replayed(pool, 2, 3)]
    pool.fold_into([1, 2], [2, 3], [5, 4])
    assert _error(held(pool).temporal[:, 5], expected[0]) < 1e-6
    assert _error(held(pool).temporal[:, 4], expected[1]) < 1e-6
    assert _error(held(pool).temporal[:, 4], expected[0]) > 1e-2
    assert [pool.ledger.slots[slot].temporal for slot in (5, 4)] == [
        EMPTY.after((100, 101)),
        EMPTY.after((200, 201, 202)),
    ]
    assert held(pool).kernels.launches == {"fold[torch]": 1}
