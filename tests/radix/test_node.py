"""The nodes and the answers: what they say of themselves."""

from __future__ import annotations

from replaylife.radix import Node, RadixTree


def test_a_key_is_the_edges_from_the_root_in_order() -> None:
    root = Node(0, None, (), 0)
    upper = Node(1, root, (1, 2), 1)
    lower = Node(2, upper, (3,), 2)
    assert lower.key() == (1, 2, 3)
    assert lower.key_len == 3
    assert lower.edge == (3,)


def test_the_root_has_the_empty_key() -> None:
    assert RadixTree().root.key() == ()
    assert RadixTree().root.key_len == 0


def test_a_node_takes_no_attribute_beyond_its_slots() -> None:
    assert not hasattr(Node(0, None, (), 0), "__dict__")


def test_the_repr_names_what_an_error_message_needs() -> None:
    tree = RadixTree()
    node = tree.insert((1, 2, 3), 7).node
    tree.lock(node)
    assert repr(node) == ("Node(id=1, key_len=3, edge=3 tokens, state=7, state_lock=1, kv_lock=1, recency=2)")
