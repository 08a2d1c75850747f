"""The free list of slots, and the count of key-value tokens."""

from __future__ import annotations

import pytest

from replaylife.pool import KvBudget, SlotAllocator


def _drain(allocator: SlotAllocator) -> list[int]:
    taken = []
    while (slot := allocator.allocate()) is not None:
        taken.append(slot)
    return taken


def test_every_slot_but_the_reserved_one_is_handed_out_once() -> None:
    assert _drain(SlotAllocator(5)) == [1, 2, 3, 4]


def test_an_exhausted_free_list_gives_none_until_a_slot_comes_back() -> None:
    allocator = SlotAllocator(2)
    assert [allocator.allocate(), allocator.allocate()] == [1, None]
    allocator.deallocate(1)
    assert allocator.allocate() == 1


def test_slots_are_handed_out_in_the_order_in_which_they_were_freed() -> None:
    allocator = SlotAllocator(5)
    _drain(allocator)
    for slot in (3, 1, 4):
        allocator.deallocate(slot)
    assert allocator.free_list == (3, 1, 4)
    assert _drain(allocator) == [3, 1, 4]


def test_a_freed_slot_goes_behind_those_that_were_free_already() -> None:
    allocator = SlotAllocator(4)
    assert allocator.allocate() == 1
    allocator.deallocate(1)
    assert allocator.free_list == (2, 3, 1)


def test_the_free_count_follows_the_free_list() -> None:
    allocator = SlotAllocator(4)
    counts = [allocator.num_free]
    allocator.allocate()
    counts.append(allocator.num_free)
    allocator.deallocate(1)
    counts.append(allocator.num_free)
    assert counts == [3, 2, 3]


def test_an_allocator_and_its_clone_do_not_see_each_other() -> None:
    allocator = SlotAllocator(4)
    allocator.allocate()
    twin = allocator.clone()
    assert (twin.num_slots, twin.free_list) == (4, (2, 3))
    allocator.deallocate(1)
    assert twin.allocate() == 2
    assert (allocator.free_list, twin.free_list) == ((2, 3, 1), (3,))


@pytest.mark.parametrize("num_slots", [1, 0, -1])
def test_an_allocator_without_a_slot_to_hand_out_is_refused(num_slots: int) -> None:
    with pytest.raises(
        ValueError, match=rf"^num_slots: {num_slots}, need at least 2 \(slot 0 is reserved\)$"
    ):
        SlotAllocator(num_slots)
    assert SlotAllocator(2).free_list == (1,)


def test_tokens_taken_and_given_back_add_up() -> None:
    kv = KvBudget(10)
    kv.take(7)
    kv.give_back(4)
    assert (kv.num_taken, kv.num_free) == (3, 7)


def test_a_budget_gives_its_last_token_and_no_more() -> None:
    kv = KvBudget(4)
    kv.take(3)
    with pytest.raises(ValueError, match=r"^kv tokens: 2 asked for, 1 of 4 free$"):
        kv.take(2)
    assert kv.num_taken == 3
    kv.take(1)
    assert kv.num_free == 0


@pytest.mark.parametrize("capacity", [0, -3])
def test_a_budget_without_tokens_is_refused(capacity: int) -> None:
    with pytest.raises(ValueError, match=rf"^kv_tokens: {capacity}, need at least 1$"):
        KvBudget(capacity)
    assert KvBudget(1).num_free == 1


def test_a_budget_and_its_clone_do_not_see_each_other() -> None:
    kv = KvBudget(5)
    kv.take(2)
    twin = kv.clone()
    twin.take(3)
    assert (kv.num_free, twin.num_free, twin.capacity) == (3, 0, 5)
