"""Reads the Rust tree core, which shows its nodes by handle and hides locks and the order of eviction."""

from __future__ import annotations

from collections.abc import Mapping

from replaylife.engines.sglang.life import Life
from replaylife.engines.sglang.look import Ids, Tree, TreeNode
from replaylife.engines.sglang.world import World
from replaylife.pool import EMPTY

MAX_GAP = 64  # handles that nodes may have had between two looks; they are minted one after the other


class RustTree:
    """Reads nodes by handle, keys through their key-value slots, states through the component's value.

    Locks are those that the requests hold, and recency follows the uses that the engine reports: the core
    shows neither, so claims about its counts and its list cannot fail here. What it evicts is judged.
    """

    def __init__(self, world: World, lives: Mapping[str, Life]) -> None:
        self._world, self._lives, self._ids = world, lives, Ids()
        self._core = world.cache.tree_core
        self._root: int = self._core.root_node_handle()
        self._handles: list[int] = []
        self._order: list[int] = []

    def read(self) -> Tree:
        """Return the tree as it stands."""
        self._find()
        nodes: dict[int, TreeNode] = {}
        for handle in sorted(self._handles, key=lambda handle: self._span(handle)[0]):
            nodes[handle] = self._node(handle, nodes)
        held = [node.id for node in nodes.values() if node.state is not None]
        self._order = [node for node in self._order if node in held]
        self._order += [node for node in held if node not in self._order]
        return Tree(tuple(nodes.values()), tuple(self._order))

    def id_of(self, handle: int) -> int | None:
        """Return our id of SGLang's node, ``None`` for the root."""
        return None if handle == self._root else self._ids[handle]

    def used(self, node: int) -> None:
        """The state of ``node`` was used: it is evicted after all others."""
        if node in self._order:
            self._order.remove(node)
            self._order.append(node)

    def _find(self) -> None:
        """Look for handles that are new, and drop those that are gone."""
        highest, missed = max(self._handles, default=self._root), 0
        while missed < MAX_GAP:
            highest += 1
            known = self._is_there(highest)
            missed = 0 if known else missed + 1
            if known:
                self._handles.append(highest)
        self._handles = [handle for handle in self._handles if self._is_there(handle)]

    def _is_there(self, handle: int) -> bool:
        try:
            self._core.collect_path_info([handle])
        except KeyError:
            return False
        return True

    def _span(self, handle: int) -> tuple[int, int, int]:
        """Start and end of a node's own tokens, and the handle above it."""
        info = self._core.collect_path_info([handle])[0][-1]
        return info.path_start, info.path_end, info.parent_id

    def _node(self, handle: int, above: Mapping[int, TreeNode]) -> TreeNode:
        start, end, parent = self._span(handle)
        places = self._world.cache.path_device_indices(handle).tolist()
        edge = tuple(self._world.kv_contents[place] for place in places[start:end])
        state = self._core.get_component_device_value(handle, self._world.theirs.ComponentType.MAMBA)
        key = (above[parent].key if parent in above else EMPTY).after(edge)
        return TreeNode(
            id=self._ids[handle],
            parent=above[parent].id if parent in above else None,
            edge=edge,
            key=key,
            state=None if state is None else int(state[0]),
            state_lock=sum(lock == handle for lock in self._locks()),
            kv_lock=sum(handle in self._path(lock) for lock in self._locks()),
        )

    def _locks(self) -> list[int]:
        locks = [life.request.lock for life in self._lives.values()]
        return [lock.node for lock in locks if lock is not None]

    def _path(self, handle: int) -> set[int]:
        if handle == self._root:
            return set()
        return {info.node_id for info in self._core.collect_path_info([handle])[0]}
