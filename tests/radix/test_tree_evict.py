"""What an eviction takes, and what it leaves."""

from __future__ import annotations

import pytest

from replaylife.radix import Node, RadixTree


def _chain() -> tuple[RadixTree, Node, Node]:
    """(1, 2) with slot 7, the older; below it (1, 2, 3, 4, 5) with slot 8."""
    tree = RadixTree()
    return tree, tree.insert((1, 2), 7).node, tree.insert((1, 2, 3, 4, 5), 8).node


def test_a_state_on_an_inner_node_leaves_a_tombstone_with_its_kv() -> None:
    tree, upper, _ = _chain()
    assert tree.evict_states(1) == ((7,), 0, (upper.id,), (), ())
    assert (upper.state, tree.num_states, tree.num_kv_tokens) == (None, 1, 5)
    assert tree.match((1, 2)).kv_len == 2


def test_a_leaf_goes_with_its_state_and_its_kv() -> None:
    tree, upper, lower = _chain()
    tree.refresh(upper)
    assert tree.evict_states(1) == ((8,), 3, (), (lower.id,), ())
    assert (tree.num_states, tree.num_kv_tokens) == (1, 2)


def test_a_parent_left_without_state_and_children_goes_with_the_leaf() -> None:
    tree, upper, lower = _chain()
    tree.evict_states(1)
    assert tree.evict_states(1) == ((8,), 5, (), (lower.id, upper.id), ())
    assert list(tree.nodes()) == []


def test_a_parent_with_a_state_stays_when_its_leaf_goes() -> None:
    tree, upper, _ = _chain()
    tree.refresh(upper)
    tree.evict_states(1)
    assert list(tree.nodes()) == [upper]


def test_a_parent_with_another_child_stays_when_its_leaf_goes() -> None:
    tree = RadixTree()
    tree.insert((1, 2, 3), 7)
    other = tree.insert((1, 2, 4), 8).node
    assert tree.evict_states(1).kv_tokens == 1
    assert list(tree.nodes()) == [other.parent, other]


def test_a_parent_that_is_locked_stays_when_its_leaf_goes() -> None:
    tree, upper, lower = _chain()
    tree.evict_states(1)
    tree.lock(upper)
    assert tree.evict_states(1).removed == (lower.id,)
    assert list(tree.nodes()) == [upper]
    tree.unlock(upper)
    assert tree.evict_kv(1).removed == (upper.id,)


def test_one_call_may_make_a_tombstone_and_then_remove_it() -> None:
    tree, upper, lower = _chain()
    assert tree.evict_states(2) == ((7, 8), 5, (upper.id,), (lower.id, upper.id), ())


def test_states_go_in_order_of_use() -> None:
    tree = RadixTree()
    nodes = [tree.insert((token,), token).node for token in (1, 2, 3, 4)]
    tree.refresh(nodes[0])
    tree.insert((3,), 9)
    assert tree.evict_states(4).slots == (2, 4, 1, 3)


def test_a_locked_state_is_passed_over_and_keeps_its_place() -> None:
    tree = RadixTree()
    first = tree.insert((1,), 1).node
    tree.insert((2,), 2)
    tree.lock(first)
    assert tree.evict_states(2).slots == (2,)
    tree.unlock(first)
    assert tree.evict_states(1).slots == (1,)


def test_a_lock_below_does_not_keep_the_state_above() -> None:
    tree, upper, lower = _chain()
    tree.lock(lower)
    assert tree.evict_states(2).tombstoned == (upper.id,)
    assert lower.state == 8


def test_more_states_than_there_are_is_all_of_them() -> None:
    tree, _, _ = _chain()
    assert tree.evict_states(99).slots == (7, 8)
    assert tree.evict_states(99) == ((), 0, (), (), ())


def test_nothing_asked_is_nothing_taken() -> None:
    tree, _, _ = _chain()
    assert tree.evict_states(0) == ((), 0, (), (), ())
    assert tree.evict_kv(0) == ((), 0, (), (), ())
    assert (tree.num_states, tree.num_kv_tokens) == (2, 5)


def test_a_negative_amount_is_refused() -> None:
    with pytest.raises(ValueError, match="asked to evict -1 states; expected 0 or more"):
        RadixTree().evict_states(-1)
    with pytest.raises(ValueError, match="asked to evict -1 tokens; expected 0 or more"):
        RadixTree().evict_kv(-1)


def test_kv_goes_leaf_by_leaf_least_recently_used_first_with_the_states() -> None:
    tree = RadixTree()
    for key, slot in (((1, 2), 1), ((3, 4), 2), ((5, 6), 3)):
        tree.insert(key, slot)
    tree.refresh(tree.match((1, 2)).kv_node)
    assert tree.evict_kv(3) == ((2, 3), 4, (), (2, 3), ())
    assert [node.state for node in tree.nodes()] == [1]


def test_kv_stops_at_the_first_leaf_that_frees_enough() -> None:
    tree, _, lower = _chain()
    assert tree.evict_kv(3).removed == (lower.id,)


def test_kv_of_an_older_inner_node_goes_after_the_leaf_below_it() -> None:
    tree, upper, lower = _chain()
    assert tree.evict_kv(4) == ((8, 7), 5, (), (lower.id, upper.id), ())


def test_kv_of_a_parent_that_becomes_a_leaf_goes_in_its_own_order() -> None:
    tree, upper, lower = _chain()
    other = tree.insert((9, 9), 9).node
    tree.refresh(upper)
    assert tree.evict_kv(6).removed == (lower.id, other.id, upper.id)


def test_kv_of_a_locked_leaf_is_passed_over_and_can_go_once_unlocked() -> None:
    tree, upper, lower = _chain()
    other = tree.insert((9, 9), 9).node
    tree.lock(lower)
    assert tree.evict_kv(99) == ((9,), 2, (), (other.id,), ())
    tree.unlock(lower)
    assert tree.evict_kv(99).removed == (lower.id, upper.id)


def test_kv_without_a_state_goes_too() -> None:
    tree = RadixTree()
    tree.insert((1, 2), None)
    assert tree.evict_kv(1) == ((), 2, (), (1,), ())


def test_an_eviction_that_ignores_locks_is_one_method_away() -> None:
    class IgnoresLocks(RadixTree):
        def _may_evict_state(self, node: Node) -> bool:
            return node.state is not None

    for kind, slots in ((RadixTree, ()), (IgnoresLocks, (7,))):
        tree = kind()
        tree.lock(tree.insert((1, 2), 7).node)
        assert tree.evict_states(1).slots == slots
