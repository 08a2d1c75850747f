"""The leaves of the tree in order of recency, for the eviction of KV."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from replaylife.radix.node import Node

_SLACK = 64  # entries of nodes that are gone, tolerated beyond one per living node


class LeafQueue:
    """A heap with at most one entry `(recency, id)` per node; an entry may lag behind its node.

    Recency only grows, so an entry is a lower bound: it is corrected when it surfaces, and using a leaf costs
    nothing here. Entries of nodes that are gone, or that have children by now, are dropped when they surface.
    """

    __slots__ = ("_heap", "_nodes", "_queued")

    def __init__(self, nodes: Mapping[int, Node]) -> None:
        self._nodes = nodes  # the tree's own table of living nodes: read here, changed there
        self._heap: list[tuple[int, int]] = []
        self._queued: set[int] = set()

    def __len__(self) -> int:
        """Entries held, the outdated ones included."""
        return len(self._heap)

    def push(self, leaf: Node) -> None:
        """Enqueue a node that has just become a leaf; one that is queued already is left alone."""
        if leaf.id in self._queued:
            return
        if len(self._heap) > 2 * len(self._nodes) + _SLACK:
            self._forget_the_gone()
        self._queued.add(leaf.id)
        heappush(self._heap, (leaf.recency, leaf.id))

    def pop(self) -> Node | None:
        """Take out the least recently used leaf, or None when no leaf is queued."""
        while self._heap:
            recency, node_id = heappop(self._heap)
            node = self._nodes.get(node_id)
            if node is None or node.children:
                self._queued.discard(node_id)
            elif node.recency != recency:
                heappush(self._heap, (node.recency, node_id))
            else:
                self._queued.discard(node_id)
                return node
        return None

    def clone(self, nodes: Mapping[int, Node]) -> LeafQueue:
        """A copy that reads another table of nodes with the same ids."""
        twin = LeafQueue(nodes)
        twin._heap = self._heap.copy()
        twin._queued = self._queued.copy()
        return twin

    def _forget_the_gone(self) -> None:
        """Drop the entries of nodes that are gone: O(entries), once per as many removals."""
        self._heap = [entry for entry in self._heap if entry[1] in self._nodes]
        self._queued = {node_id for _, node_id in self._heap}
        heapify(self._heap)
