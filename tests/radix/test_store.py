"""The bookkeeping: recency, order of nodes, what was touched, handles, clones."""

from __future__ import annotations

import pytest

from replaylife.radix import RadixTree


def _two_branches() -> RadixTree:
    tree = RadixTree()
    tree.insert((1, 2, 3, 4), 10)  # id 1
    tree.insert((1, 2, 5), 11)  # id 2 is the split point (1, 2), id 3 the leaf
    tree.insert((8,), 12)  # id 4
    return tree


def test_a_page_of_no_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="page_size is 0; expected at least 1 token"):
        RadixTree(page_size=0)


def test_nodes_come_parent_first_and_siblings_in_order_of_insertion() -> None:
    assert [node.key() for node in _two_branches().nodes()] == [(1, 2), (1, 2, 3, 4), (1, 2, 5), (8,)]


def test_the_root_is_not_among_the_nodes() -> None:
    tree = _two_branches()
    assert tree.root not in list(tree.nodes())
    assert list(RadixTree().nodes()) == []


def test_states_come_in_order_of_use() -> None:
    tree = _two_branches()
    tree.refresh(tree.match((1, 2, 3, 4)).kv_node)
    assert [node.state for node in tree.lru_states()] == [11, 12, 10]


def test_a_refresh_changes_no_other_node() -> None:
    tree = _two_branches()
    node = tree.match((1, 2, 3, 4)).kv_node
    others = {n.id: n.recency for n in tree.nodes() if n is not node}
    tree.refresh(node)
    assert {n.id: n.recency for n in tree.nodes() if n is not node} == others
    assert node.recency > max(others.values())


def test_a_tombstone_can_be_refreshed_and_enters_no_order_of_states() -> None:
    tree = _two_branches()
    split_point = tree.match((1, 2)).kv_node
    tree.refresh(split_point)
    assert split_point not in list(tree.lru_states())
    assert split_point.recency == max(node.recency for node in tree.nodes())


def test_the_counts_are_those_of_the_nodes() -> None:
    tree = _two_branches()
    assert tree.num_kv_tokens == sum(len(node.edge) for node in tree.nodes()) == 6
    assert tree.num_states == 3


def test_ids_are_dense_and_not_used_again() -> None:
    tree = _two_branches()
    assert sorted(node.id for node in tree.nodes()) == [1, 2, 3, 4]
    tree.evict_states(3)
    assert tree.insert((8,), 12).node.id == 5


def test_find_gives_a_living_node_and_none_for_one_that_is_gone() -> None:
    tree = _two_branches()
    assert tree.find(4) is tree.match((8,)).kv_node
    tree.refresh(tree.match((1, 2, 3, 4)).kv_node)
    tree.refresh(tree.match((1, 2, 5)).kv_node)
    tree.evict_states(1)
    assert tree.find(4) is None
    assert tree.find(0) is tree.root


def test_touched_holds_what_changed_and_is_handed_over_once() -> None:
    tree = _two_branches()
    assert tree.take_touched() == {1, 2, 3, 4}
    assert tree.take_touched() == set()
    tree.lock(tree.match((1, 2, 5)).kv_node)
    assert tree.touched == {2, 3}


def test_a_match_touches_nothing() -> None:
    tree = _two_branches()
    tree.take_touched()
    tree.match((1, 2, 5, 6))
    assert tree.touched == set()


def test_the_root_is_never_touched() -> None:
    tree = RadixTree()
    tree.lock(tree.root)
    tree.unlock(tree.root)
    tree.refresh(tree.root)
    assert tree.touched == set()


def test_a_node_that_was_removed_is_refused() -> None:
    tree = RadixTree()
    node = tree.insert((1,), 1).node
    tree.refresh(node)
    tree.evict_states(1)
    for use in (tree.refresh, tree.lock, tree.unlock):
        with pytest.raises(
            ValueError, match="is not a node of this tree; expected one that was neither removed"
        ):
            use(node)


def test_a_node_of_the_original_is_refused_by_the_clone_and_found_by_its_id() -> None:
    tree = _two_branches()
    node = tree.match((8,)).kv_node
    twin = tree.clone()
    with pytest.raises(ValueError, match="look its id up with find"):
        twin.lock(node)
    found = twin.find(node.id)
    assert found is not None
    twin.lock(found)
    assert (found.state_lock, node.state_lock) == (1, 0)


def test_a_clone_goes_on_as_the_original_would() -> None:
    tree = _two_branches()
    twin = tree.clone()
    for one in (tree, twin):
        one.insert((1, 2, 3, 9), 20)
        one.evict_states(2)
    assert [repr(node) for node in tree.nodes()] == [repr(node) for node in twin.nodes()]
    assert tree.touched == twin.touched


def test_a_clone_keeps_the_class_and_what_a_subclass_added() -> None:
    class Labelled(RadixTree):
        label = "none"

    tree = Labelled(page_size=2)
    tree.label = "mine"
    twin = tree.clone()
    assert type(twin) is Labelled
    assert (twin.label, twin.page_size) == ("mine", 2)
