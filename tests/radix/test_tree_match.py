"""What a match finds."""

from __future__ import annotations

import pytest

from replaylife.radix import RadixTree


def _chain() -> RadixTree:
    """State at 4, none at 6 (a tombstone), state at 8."""
    tree = RadixTree()
    tree.insert((1, 2, 3, 4), 10)
    tree.insert((1, 2, 3, 4, 5, 6), 11)
    tree.insert((1, 2, 3, 4, 5, 6, 7, 8), 12)
    tree.refresh(tree.match((1, 2, 3, 4)).kv_node)
    assert tree.evict_states(1).slots == (11,)
    return tree


def test_an_empty_tree_matches_nothing_at_the_root() -> None:
    tree = RadixTree()
    assert tree.match((1, 2)) == (0, tree.root, 0, None, None)


def test_a_whole_key_is_matched_with_its_state() -> None:
    match = _chain().match((1, 2, 3, 4, 5, 6, 7, 8))
    assert (match.kv_len, match.state_len) == (8, 8)
    assert match.kv_node is match.state_node


def test_a_tombstone_gives_its_kv_and_the_state_above_it() -> None:
    match = _chain().match((1, 2, 3, 4, 5, 6))
    assert (match.kv_len, match.kv_node.key_len) == (6, 6)
    assert match.state_node is not None
    assert (match.state_len, match.state_node.state) == (4, 10)


def test_a_match_inside_an_edge_counts_for_kv_only() -> None:
    match = _chain().match((1, 2, 3, 4, 5, 6, 7, 99))
    assert (match.kv_len, match.state_len) == (7, 4)


def test_the_kv_node_of_a_match_inside_an_edge_owns_the_last_matched_token() -> None:
    match = _chain().match((1, 2, 3, 4, 5, 6, 7, 99))
    assert match.kv_node.key_len == 8
    assert match.kv_node.key_len - len(match.kv_node.edge) < match.kv_len


def test_a_first_token_that_differs_matches_nothing() -> None:
    assert _chain().match((2, 2, 3, 4)).kv_len == 0


def test_the_limit_keeps_a_state_that_lies_beyond_it_out() -> None:
    tree = _chain()
    key = (1, 2, 3, 4, 5, 6, 7, 8)
    assert tree.match(key, limit=7).state_len == 4
    assert tree.match(key, limit=8).state_len == 8
    assert tree.match(key, limit=99).state_len == 8


def test_a_limit_of_nothing_matches_nothing() -> None:
    tree = _chain()
    assert tree.match((1, 2, 3), limit=0) == (0, tree.root, 0, None, None)


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="limit is -1; expected at least 0 tokens"):
        _chain().match((), limit=-1)


def test_a_match_counts_whole_pages() -> None:
    tree = RadixTree(page_size=4)
    tree.insert((1, 2, 3, 4, 5, 6, 7, 8), 10)
    assert tree.match((1, 2, 3, 4, 5, 6, 7, 8, 9)).kv_len == 8
    assert tree.match((1, 2, 3, 4, 5, 6, 7)).kv_len == 4
    assert tree.match((1, 2, 3, 4, 5, 6, 7, 8), limit=7).kv_len == 4
    assert tree.match((1, 2, 3)).kv_len == 0


def test_a_match_changes_nothing() -> None:
    tree = _chain()
    before = [repr(node) for node in tree.nodes()]
    order = list(tree.lru_states())
    tree.match((1, 2, 3, 99))
    assert [repr(node) for node in tree.nodes()] == before
    assert list(tree.lru_states()) == order


@pytest.mark.parametrize("at", [0, 1, 9_999, 15_000, 19_999])
def test_a_key_of_twenty_thousand_tokens_is_matched_up_to_its_first_difference(at: int) -> None:
    tree = RadixTree()
    key = tuple(range(20_000))
    tree.insert(key, 1)
    assert tree.match((*key[:at], -1, *key[at + 1 :])).kv_len == at
