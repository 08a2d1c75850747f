"""Reads SGLang's tree, pools and requests; changes nothing, not even recency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from replaylife.engines.sglang.life import Life
from replaylife.engines.sglang.world import World
from replaylife.pool import EMPTY, Fold


class TreeNode(NamedTuple):
    """One node as read off the tree, with ids of ours: SGLang counts nodes over all trees of a process."""

    id: int
    parent: int | None
    edge: tuple[int, ...]
    key: Fold
    state: int | None
    state_lock: int
    kv_lock: int


@dataclass(frozen=True, slots=True)
class Tree:
    """All nodes, parents first, and the nodes with a state in the order of their eviction."""

    nodes: tuple[TreeNode, ...]
    lru: tuple[int, ...]

    def by_id(self) -> dict[int, TreeNode]:
        """The nodes by id."""
        return {node.id: node for node in self.nodes}

    def walk(self, tokens: Sequence[int]) -> tuple[int, tuple[TreeNode, ...]]:
        """Return how many of ``tokens`` have key-value, and the nodes that lie wholly on the way."""
        children: dict[int | None, list[TreeNode]] = {}
        for node in self.nodes:
            children.setdefault(node.parent, []).append(node)
        at, depth, path = None, 0, list[TreeNode]()
        while True:
            found = next(
                (n for n in children.get(at, ()) if n.edge[:1] == tuple(tokens[depth : depth + 1])), None
            )
            if found is None:
                return depth, tuple(path)
            same = _common(found.edge, tokens[depth : depth + len(found.edge)])
            depth += same
            if same < len(found.edge):
                return depth, tuple(path)
            path.append(found)
            at = found.id


class TreeReader(Protocol):
    """What can read a tree core."""

    def read(self) -> Tree:
        """Return the tree as it stands."""
        ...

    def id_of(self, handle: int) -> int | None:
        """Return our id of SGLang's node, ``None`` for the root."""
        ...

    def used(self, node: int) -> None:
        """Take note that the state of our node was used; of no interest where the order can be read."""
        ...


class Ids:
    """Numbers nodes from 1 in the order in which they are first seen."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def __getitem__(self, handle: int) -> int:
        return self._known.setdefault(handle, len(self._known) + 1)


class PythonTree:
    """Reads the Python tree core node by node."""

    def __init__(self, world: World, lives: Mapping[str, Life]) -> None:
        del lives  # the tree's own lock counts are read
        self._core, self._ids = world.cache.tree_core, Ids()
        self._full, self._mamba = world.theirs.ComponentType.FULL, world.theirs.ComponentType.MAMBA

    def read(self) -> Tree:
        """Return the tree as it stands."""
        return Tree(tuple(self._nodes(self._core.root_node, None, EMPTY)), tuple(self._order()))

    def id_of(self, handle: int) -> int | None:
        """Return our id of SGLang's node, ``None`` for the root."""
        return None if handle == self._core.root_node.id else self._ids[handle]

    def used(self, node: int) -> None:
        """The LRU list itself is read."""

    def _nodes(self, above: Any, parent: int | None, key: Fold) -> Iterator[TreeNode]:
        for node in above.children.values():
            edge = tuple(int(token) for token in node.key)
            state, full = node.component_data[self._mamba], node.component_data[self._full]
            view = TreeNode(
                id=self._ids[node.id],
                parent=parent,
                edge=edge,
                key=key.after(edge),
                state=None if state.value is None else int(state.value[0]),
                state_lock=state.lock_ref,
                kv_lock=full.lock_ref,
            )
            yield view
            yield from self._nodes(node, view.id, view.key)

    def _order(self) -> Iterator[int]:
        """From the least recently used on; locked states keep their place."""
        lru = self._core.lru_lists[self._mamba]
        at = lru.tail.lru_prev[lru._pt]
        while at is not lru.head:
            yield self._ids[at.id]
            at = at.lru_prev[lru._pt]


class Recency:
    """A logical clock for the order of the LRU list: what has moved up gets a new, larger value.

    SGLang keeps an order and no clock. A state keeps its value until the order says that it was used.
    """

    def __init__(self) -> None:
        self._values: dict[int, int] = {}
        self._clock = 0

    def update(self, tree: Tree) -> dict[int, int]:
        """Return the value of every node after reading ``tree``; nodes without a state keep theirs."""
        highest = 0
        for node in tree.lru:
            value = self._values.get(node, 0)
            if value <= highest:
                value = self._tick()
            self._values[node] = highest = value
        alive = {node.id for node in tree.nodes}
        self._values = {node: value for node, value in self._values.items() if node in alive}
        for node_id in alive:
            if node_id not in self._values:
                self._values[node_id] = 0  # a split point or a leaf without a state: never in the list
        return dict(self._values)

    def _tick(self) -> int:
        self._clock += 1
        return self._clock


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
