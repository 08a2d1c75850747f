"""Copies of a whole pool."""

from __future__ import annotations

from copy import deepcopy

import pytest

from replaylife.pool import MambaPool

from .support import decode, records, small, tensor_pool


def test_a_ledger_only_pool_and_its_clone_do_not_see_each_other() -> None:
    pool = MambaPool(small(), log_records=True)
    pool.step = 4
    assert pool.alloc() == 1
    decode(pool, 1, 3)
    before, cursors = deepcopy(pool.ledger), list(pool.write_pos or ())
    twin = pool.clone()
    assert (twin.ledger.slots, twin.write_pos, twin.step, twin.touched) == (before.slots, cursors, 4, {1})
    assert twin.alloc() == 2
    twin.fold([1])
    twin.step = 5
    assert (pool.ledger.slots, pool.write_pos) == (before.slots, cursors)
    assert (pool.allocator.free_list, pool.step, pool.touched) == ((2, 3, 4, 5), 4, {1})
    twin.append([(1, records(9)[0])])
    assert pool.ledger.slots == before.slots
    decode(pool, 1, 1)
    assert twin.pending(1) == 0


def test_a_clone_is_of_the_same_class_so_that_a_seeded_fault_survives() -> None:
    class Faulty(MambaPool):
        pass

    assert type(Faulty(small()).clone()) is Faulty


def test_a_pool_with_tensors_refuses_to_be_cloned() -> None:
    with pytest.raises(ValueError, match=r"pool: has tensors, need a ledger-only pool to clone"):
        tensor_pool().clone()
    assert MambaPool(small()).clone().tensors is None


def test_a_pool_without_replayssm_clones_without_a_cursor() -> None:
    twin = MambaPool(small(ring_length=None)).clone()
    assert twin.write_pos is None
    assert twin.pending(1) == 0
