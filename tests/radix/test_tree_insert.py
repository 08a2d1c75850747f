"""Where a key and its state land."""

from __future__ import annotations

import pytest

from replaylife.radix import Node, RadixTree


def test_a_new_key_becomes_a_leaf_that_takes_the_state() -> None:
    tree = RadixTree()
    node, known, took = tree.insert((1, 2, 3), 7)
    assert (node.key(), node.state, known, took) == ((1, 2, 3), 7, 0, True)


def test_a_longer_key_adds_only_the_tokens_that_were_not_known() -> None:
    tree = RadixTree()
    tree.insert((1, 2, 3), 7)
    node, known, _ = tree.insert((1, 2, 3, 4, 5), 8)
    assert (known, node.edge, tree.num_kv_tokens) == (3, (4, 5), 5)


def test_a_state_met_is_kept_refreshed_and_the_offered_slot_left_to_the_caller() -> None:
    tree = RadixTree()
    first = tree.insert((1, 2), 7).node
    tree.insert((9,), 8)
    node, known, took = tree.insert((1, 2), 9)
    assert (node, known, took, node.state) == (first, 2, False, 7)
    assert [n.state for n in tree.lru_states()] == [8, 7]


def test_a_slot_that_was_not_taken_may_be_offered_again() -> None:
    tree = RadixTree()
    tree.insert((1, 2), 7)
    assert not tree.insert((1, 2), 9).took_state
    assert tree.insert((1, 2, 3), 9).took_state


def test_a_tombstone_takes_the_state_as_the_newest() -> None:
    tree = RadixTree()
    upper = tree.insert((1, 2), 7).node
    tree.insert((1, 2, 3), 8)
    tree.evict_states(1)
    node, known, took = tree.insert((1, 2), 9)
    assert (node, known, took) == (upper, 2, True)
    assert [n.state for n in tree.lru_states()] == [8, 9]


def test_a_key_that_ends_inside_an_edge_splits_it_and_takes_the_state_there() -> None:
    tree = RadixTree()
    lower = tree.insert((1, 2, 3, 4), 7).node
    upper, known, took = tree.insert((1, 2), 8)
    assert (upper.key(), upper.state, known, took) == ((1, 2), 8, 2, True)
    assert (lower.parent, lower.key(), lower.state) == (upper, (1, 2, 3, 4), 7)
    assert tree.num_kv_tokens == 4


def test_a_key_that_parts_inside_an_edge_leaves_a_split_point_without_a_state() -> None:
    tree = RadixTree()
    lower = tree.insert((1, 2, 3, 4), 7).node
    leaf = tree.insert((1, 2, 5), 8).node
    split_point = leaf.parent
    assert split_point is not None
    assert split_point is lower.parent
    assert (split_point.key(), split_point.state, split_point.state_lock) == ((1, 2), None, 0)


def test_a_split_leaves_state_state_lock_and_recency_on_the_lower_half() -> None:
    tree = RadixTree()
    lower = tree.insert((1, 2, 3, 4), 7).node
    tree.lock(lower)
    recency = lower.recency
    tree.insert((1, 2, 5), 8)
    assert (lower.state, lower.state_lock, lower.kv_lock, lower.recency) == (7, 1, 1, recency)


def test_a_split_pins_the_upper_half_for_whoever_pinned_the_lower() -> None:
    tree = RadixTree()
    lower = tree.insert((1, 2, 3, 4), 7).node
    tree.lock(lower)
    tree.lock(lower)
    upper = tree.insert((1, 2), None).node
    assert (upper.kv_lock, upper.state_lock) == (2, 0)
    tree.unlock(lower)
    tree.unlock(lower)
    assert (upper.kv_lock, lower.kv_lock, tree.root.kv_lock) == (0, 0, 0)


def test_a_key_without_a_state_is_inserted_for_its_kv() -> None:
    tree = RadixTree()
    node, known, took = tree.insert((1, 2), None)
    assert (node.state, known, took, tree.num_states, tree.num_kv_tokens) == (None, 0, False, 0, 2)


def test_an_insert_without_a_state_uses_the_state_it_meets_and_nothing_else() -> None:
    tree = RadixTree()
    met = tree.insert((1, 2), 7).node
    bare = tree.insert((1, 2, 3), None).node
    before = bare.recency
    tree.insert((1, 2, 3), None)
    assert bare.recency == before
    tree.insert((1, 2), None)
    assert met.recency > before


def test_an_insert_refreshes_nothing_above_its_node() -> None:
    tree = RadixTree()
    upper = tree.insert((1, 2), 7).node
    before = upper.recency
    tree.insert((1, 2, 3), 8)
    assert upper.recency == before


def test_siblings_that_share_part_of_a_page_are_not_split_inside_it() -> None:
    tree = RadixTree(page_size=4)
    tree.insert((1, 2, 3, 4, 5, 6, 7, 8), 7)
    tree.insert((1, 2, 3, 4, 5, 6, 0, 0), 8)
    assert [node.key_len for node in tree.nodes()] == [4, 8, 8]
    tree.insert((1, 2, 0, 0), 9)
    assert set(tree.root.children) == {(1, 2, 3, 4), (1, 2, 0, 0)}


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(ValueError, match="the key is empty; expected at least one page"):
        RadixTree().insert((), 1)


def test_a_broken_page_is_refused_and_says_where_to_cut() -> None:
    tree = RadixTree(page_size=4)
    with pytest.raises(
        ValueError, match="the key has 6 tokens; expected a multiple of the page of 4: cut it to 4"
    ):
        tree.insert((1, 2, 3, 4, 5, 6), 1)
    assert tree.insert((1, 2, 3, 4), 1).took_state


def test_a_slot_that_the_tree_owns_is_refused_and_nothing_changes() -> None:
    tree = RadixTree()
    tree.insert((1, 2, 3), 7)
    with pytest.raises(ValueError, match=r"slot 7 is already in the tree, at Node\(id=1"):
        tree.insert((1, 9), 7)
    assert [node.key() for node in tree.nodes()] == [(1, 2, 3)]


def test_a_slot_that_the_tree_gave_up_is_accepted_again() -> None:
    tree = RadixTree()
    tree.insert((1, 2, 3), 7)
    tree.evict_states(1)
    assert tree.insert((1, 9), 7).took_state


def test_the_place_of_the_state_at_a_split_is_one_method_that_can_be_replaced() -> None:
    class StateGoesUp(RadixTree):
        def _split_state(self, upper: Node, lower: Node) -> None:
            self._attach_state(upper, self._detach_state(lower))

    tree = StateGoesUp()
    tree.insert((1, 2, 3, 4), 7)
    tree.insert((1, 2, 5), 8)
    assert [node.state for node in tree.nodes()] == [7, None, 8]
