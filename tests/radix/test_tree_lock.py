"""What a lock pins."""

from __future__ import annotations

import pytest

from replaylife.radix import Node, RadixTree


def _chain() -> tuple[RadixTree, Node, Node]:
    tree = RadixTree()
    return tree, tree.insert((1, 2), 7).node, tree.insert((1, 2, 3), 8).node


def test_a_lock_pins_the_state_of_its_node_only_and_the_kv_of_the_path() -> None:
    tree, upper, lower = _chain()
    tree.lock(lower)
    assert [(n.state_lock, n.kv_lock) for n in (tree.root, upper, lower)] == [(0, 1), (0, 1), (1, 1)]


def test_a_lock_pins_nothing_below_its_node() -> None:
    tree, upper, lower = _chain()
    tree.lock(upper)
    assert (lower.state_lock, lower.kv_lock) == (0, 0)


def test_locks_of_several_holders_add_up_and_are_undone_one_by_one() -> None:
    tree, upper, lower = _chain()
    tree.lock(upper)
    tree.lock(lower)
    tree.lock(lower)
    assert (upper.kv_lock, lower.kv_lock) == (3, 2)
    tree.unlock(lower)
    tree.unlock(upper)
    assert (upper.state_lock, upper.kv_lock, lower.state_lock, lower.kv_lock) == (0, 1, 1, 1)


def test_a_lock_leaves_recency_alone() -> None:
    tree, upper, lower = _chain()
    before = (upper.recency, lower.recency)
    tree.lock(lower)
    tree.unlock(lower)
    assert (upper.recency, lower.recency) == before


def test_a_lock_taken_on_a_tombstone_covers_the_state_that_arrives_later() -> None:
    tree, upper, _ = _chain()
    tree.evict_states(1)
    tree.lock(upper)
    tree.insert((1, 2), 9)
    assert tree.evict_states(2).slots == (8,)
    tree.unlock(upper)
    assert tree.evict_states(2).slots == (9,)


def test_an_unlock_of_an_unlocked_node_is_refused_and_changes_nothing() -> None:
    tree, upper, lower = _chain()
    tree.lock(lower)
    with pytest.raises(RuntimeError, match=r"Node\(id=1.* is not locked; expected one unlock for each lock"):
        tree.unlock(upper)
    assert (upper.state_lock, upper.kv_lock) == (0, 1)
    tree.unlock(lower)


def test_a_lock_lost_on_the_path_is_reported_by_the_unlock_below_it() -> None:
    tree, upper, lower = _chain()
    tree.lock(lower)
    upper.kv_lock = 0
    with pytest.raises(RuntimeError, match="has no KV lock left"):
        tree.unlock(lower)


def test_the_root_can_be_locked_for_a_request_that_matched_nothing() -> None:
    tree = RadixTree()
    tree.lock(tree.match((1, 2)).kv_node)
    assert tree.root.kv_lock == 1
    tree.unlock(tree.root)
    assert tree.root.kv_lock == 0
