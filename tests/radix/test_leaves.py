"""The queue of leaves in order of recency."""

from __future__ import annotations

from replaylife.radix._leaves import LeafQueue
from replaylife.radix.node import Node


def _queue_of(*recencies: int) -> tuple[LeafQueue, dict[int, Node]]:
    root = Node(0, None, (), 0)
    nodes = {0: root}
    queue = LeafQueue(nodes)
    for node_id, recency in enumerate(recencies, start=1):
        nodes[node_id] = Node(node_id, root, (node_id,), recency)
        queue.push(nodes[node_id])
    return queue, nodes


def _drain(queue: LeafQueue) -> list[int]:
    ids = []
    while (leaf := queue.pop()) is not None:
        ids.append(leaf.id)
    return ids


def test_leaves_come_out_least_recently_used_first() -> None:
    queue, _ = _queue_of(5, 3, 4)
    assert _drain(queue) == [2, 3, 1]


def test_a_leaf_used_after_it_was_queued_comes_out_at_its_new_place() -> None:
    queue, nodes = _queue_of(1, 2, 3)
    nodes[1].recency = 9
    assert _drain(queue) == [2, 3, 1]


def test_a_node_that_is_gone_does_not_come_out() -> None:
    queue, nodes = _queue_of(1, 2)
    del nodes[1]
    assert _drain(queue) == [2]


def test_a_node_with_children_does_not_come_out_until_it_is_pushed_as_a_leaf_again() -> None:
    queue, nodes = _queue_of(1, 2)
    nodes[1].children[(7,)] = nodes[2]
    assert _drain(queue) == [2]
    nodes[1].children.clear()
    queue.push(nodes[1])
    assert _drain(queue) == [1]


def test_a_leaf_pushed_twice_comes_out_once() -> None:
    queue, nodes = _queue_of(1)
    queue.push(nodes[1])
    assert _drain(queue) == [1]


def test_entries_of_nodes_that_are_gone_do_not_pile_up() -> None:
    queue, nodes = _queue_of()
    for node_id in range(1, 2_001):
        nodes[node_id] = Node(node_id, nodes[0], (node_id,), node_id)
        queue.push(nodes[node_id])
        if node_id > 10:
            del nodes[node_id - 10]
    assert len(queue) <= 100
    assert _drain(queue) == list(range(1_991, 2_001))


def test_entries_of_living_leaves_are_all_kept() -> None:
    queue, _ = _queue_of(*range(1, 2_001))
    assert len(queue) == 2_000


def test_a_clone_is_drained_alone() -> None:
    queue, nodes = _queue_of(2, 1)
    assert _drain(queue.clone(dict(nodes))) == [2, 1]
    assert _drain(queue) == [2, 1]
