"""What the tree is made of (`Node`) and what its operations answer (`Match`, `Inserted`, `Evicted`)."""

from __future__ import annotations

from typing import NamedTuple

Tokens = tuple[int, ...]


class Node:
    """Owns the KV of tokens `[key_len - len(edge), key_len)` and at most one state, of `[0, key_len)`.

    Read it freely; only the tree that it belongs to changes it. `state` is a slot number, or None: an inner
    node without one is a tombstone or a split point. `kv_lock` counts the holders of this node and of every
    node below, `state_lock` those of this node alone. `host` is where a copy of the state lies in
    host memory, or None. `recency` is the logical time of the last use: larger
    is newer. `id` is dense and never used again, the root's is 0.
    """

    __slots__ = (
        *("children", "edge", "host", "id", "key_len", "kv_lock", "parent", "recency", "state"),
        "state_lock",
    )

    def __init__(self, node_id: int, parent: Node | None, edge: Tokens, recency: int) -> None:
        self.id = node_id
        self.parent = parent
        self.children: dict[Tokens, Node] = {}
        self.edge = edge
        self.key_len: int = len(edge) + (parent.key_len if parent is not None else 0)
        self.state: int | None = None
        self.host: int | None = None
        self.state_lock = 0
        self.kv_lock = 0
        self.recency = recency

    def key(self) -> Tokens:
        """The whole key from the root, `key_len` tokens: built anew on every call, in O(key_len)."""
        edges = []
        node: Node | None = self
        while node is not None:
            edges.append(node.edge)
            node = node.parent
        return tuple(token for edge in reversed(edges) for token in edge)

    def __repr__(self) -> str:
        return (
            f"Node(id={self.id}, key_len={self.key_len}, edge={len(self.edge)} tokens, state={self.state}, "
            f"state_lock={self.state_lock}, kv_lock={self.kv_lock}, recency={self.recency})"
        )


class Match(NamedTuple):
    """How much of a key the tree holds: KV of tokens `[0, kv_len)`, and a state of `[0, state_len)`.

    `kv_node` owns the last of those KV tokens, so that a lock on it pins them all; `kv_node.key_len > kv_len`
    says that the match ended inside its edge. It is the root when nothing matched. `state_node` is None and
    `state_len` 0 when no node of the path carries a state; otherwise `state_node.key_len == state_len`.
    `host_node` is the deepest node beyond it with a copy in host memory, which a load makes a state, if any.
    """

    kv_len: int
    kv_node: Node
    state_len: int
    state_node: Node | None
    host_node: Node | None = None


class Inserted(NamedTuple):
    """Where an inserted key ended, and what of the caller's belongings the tree did not need.

    The tree owned the KV of `[0, known_kv_len)` before: the caller's own copies of those are duplicates. It
    takes over `[known_kv_len, node.key_len)`. `took_state` is False when the node already had a state (the
    caller frees the slot it offered) and when none was offered.
    """

    node: Node
    known_kv_len: int
    took_state: bool


class Evicted(NamedTuple):
    """What left the tree: slots and KV tokens for the caller to free, in the order of eviction.

    `tombstoned` are the ids of nodes that lost their state and kept their KV, `removed` of those that are
    gone. A node that became a tombstone and then lost its last child is in both. `hosts` are the places of
    the copies in host memory that went.
    """

    slots: tuple[int, ...]
    kv_tokens: int
    tombstoned: tuple[int, ...]
    removed: tuple[int, ...]
    hosts: tuple[int, ...] = ()
