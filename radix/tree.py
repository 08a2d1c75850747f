"""The rules of the tree: what a match finds, where a state lands, what a lock pins, what an eviction takes.

They follow SGLang's `MambaRadixCache` (python/sglang/srt/mem_cache/mamba_radix_cache.py of
https://github.com/sgl-project/sglang) in its later form, where a match refreshes the state that it uses and
no longer those above it. Two deviations: a match changes nothing here, neither splitting nor refreshing (the
caller refreshes the node whose state it uses), and KV has no order of its own but shares that of its node.
"""

from __future__ import annotations

from itertools import islice

from replaylife.radix._prefix import shared_len
from replaylife.radix._store import NodeStore
from replaylife.radix.node import Evicted, Inserted, Match, Node, Tokens


class RadixTree(NodeStore):
    """Which prefixes are cached: KV for every token of every key, a state at the end of some.

    Keys in the tree are multiples of `page_size` tokens and never empty; siblings differ in their first page.
    A slot that was inserted and taken belongs to the tree until an `Evicted` names it.
    """

    def match(self, key: Tokens, limit: int | None = None) -> Match:
        """The longest cached prefix of at most `limit` tokens, whole pages only; changes nothing.

        A prefix that ends inside an edge counts for `kv_len` and not for `state_len`. The answer holds until
        the tree changes: lock its nodes to keep them. Raises ValueError on a negative limit.
        """
        if limit is not None and limit < 0:
            raise ValueError(f"limit is {limit}; expected at least 0 tokens, or None for the whole key")
        end = len(key) if limit is None else min(len(key), limit)
        node, partial, kv_len = self._walk(key, end - end % self.page_size)
        state_node = self._deepest_state(node)
        state_len = 0 if state_node is None else state_node.key_len
        host_node = self._deepest_host(node, state_len) if self._hosts else None
        return Match(kv_len, partial or node, state_len, state_node, host_node)

    def insert(self, key: Tokens, state: int | None) -> Inserted:
        """Make `key` a node of the tree, with `state` if that is not None and the node has none yet.

        Adds at most one leaf and at most one split. The node becomes the most recently used if it is new,
        takes a state, or has one already; the recency of all others and every lock are left alone. Raises
        ValueError, and changes nothing, on an empty key, a broken page, or a slot that the tree already owns.
        """
        self._check_key(key)
        self._check_slot(state)
        node, partial, known = self._walk(key, len(key))
        if partial is not None:
            node = self._split(partial, known - node.key_len)
        if known < len(key):
            node = self._add_leaf(node, key[known:])
        took = False
        if node.state is not None:
            self._meet_state(node)
        elif state is not None:
            self._attach_state(node, state)
            took = True
        return Inserted(node, known, took)

    def lock(self, node: Node) -> None:
        """Pin the state of this node only, and the KV of the path from the root to it; recency stays."""
        self._check_known(node)
        self._pin_state(node)
        self._pin_kv(node)

    def unlock(self, node: Node) -> None:
        """Undo one `lock` of this node; evicts nothing. Raises RuntimeError if there is none to undo."""
        self._check_known(node)
        if node.state_lock < 1:
            raise RuntimeError(
                f"{node!r} is not locked; expected one unlock for each lock: find the second release"
            )
        self._unpin_state(node)
        self._unpin_kv(node)

    def evict_states(self, count: int) -> Evicted:
        """Evict up to `count` states, least recently used first, passing over those that may not go.

        An inner node keeps its KV and becomes a tombstone. A leaf is removed with its KV, and so are the
        ancestors that this leaves bare. All other nodes are left alone, recency included.
        """
        _check_amount(count, "states")
        victims = list(islice(filter(self._may_evict_state, self._lru.values()), count))
        slots: list[int] = []
        tombstoned: list[int] = []
        removed: list[Node] = []
        for node in victims:
            slots.append(self._detach_state(node))
            if self._is_bare(node):
                removed += self._remove_branch(node)
            else:
                tombstoned.append(node.id)
        return _evicted(slots, tombstoned, removed)

    def evict_kv(self, tokens: int) -> Evicted:
        """Evict leaf by leaf, least recently used first, until `tokens` KV tokens are free or none may go.

        A leaf gives up its state with its KV; ancestors left bare go with it, and a parent left with a state
        is a leaf from then on. Locked leaves and all other nodes are left alone, recency included.
        """
        _check_amount(tokens, "tokens")
        slots: list[int] = []
        removed: list[Node] = []
        hosts: list[int] = []
        passed_over: list[Node] = []
        before = self.num_kv_tokens
        while before - self.num_kv_tokens < tokens and (leaf := self._leaves.pop()) is not None:
            if not self._may_evict_kv(leaf):
                passed_over.append(leaf)
                continue
            if leaf.state is not None:
                slots.append(self._detach_state(leaf))
            if leaf.host is not None:
                hosts.append(self.detach_host(leaf))
            removed += self._remove_branch(leaf)
        for leaf in passed_over:
            self._leaves.push(leaf)
        return _evicted(slots, [], removed, hosts)

    def evict_hosts(self, count: int) -> Evicted:
        """Evict up to `count` copies in host memory, least recently used first, passing over those pinned.

        A node that is left bare is removed with its KV, and so are the ancestors that this leaves bare.
        """
        _check_amount(count, "copies")
        free_to_go = sorted(filter(self._may_evict_state, self._hosts.values()), key=lambda n: n.recency)
        hosts: list[int] = []
        removed: list[Node] = []
        for node in free_to_go[:count]:
            hosts.append(self.detach_host(node))
            if self._is_bare(node):
                removed += self._remove_branch(node)
        return _evicted([], [], removed, hosts)

    def release_branch(self, key: Tokens) -> Evicted:
        """Remove the nodes of `key` that no other key needs, with state, copy and KV: the end of a session.

        From the last node matched upwards, up to the first that is locked, has children, or is the root.
        """
        at, _, _ = self._walk(key, len(key) - len(key) % self.page_size)
        slots: list[int] = []
        hosts: list[int] = []
        removed: list[Node] = []
        while at is not self.root and not at.children and self._may_evict_kv(at):
            if at.state is not None:
                slots.append(self._detach_state(at))
            if at.host is not None:
                hosts.append(self.detach_host(at))
            removed.append(at)
            at = self._remove_leaf(at)
        return _evicted(slots, [], removed, hosts)

    def attach_state(self, node: Node, slot: int) -> None:
        """Give a node without a state one that was loaded; it becomes the most recently used.

        Raises ValueError, and changes nothing, on a slot that the tree already owns.
        """
        self._check_known(node)
        self._check_slot(slot)
        self._attach_state(node, slot)

    def _walk(self, key: Tokens, end: int) -> tuple[Node, Node | None, int]:
        """Follow `key[:end]`: last node matched whole, child matched in part or None, tokens matched."""
        node, at, page = self.root, 0, self.page_size
        while at < end:
            child = node.children.get(key[at : at + page])
            if child is None:
                break
            shared = shared_len(child.edge, key, at, end, page)
            at += shared
            if shared < len(child.edge):
                return node, child, at
            node = child
        return node, None, at

    def _deepest_state(self, node: Node) -> Node | None:
        """The nearest node with a state on the way from `node` up to the root."""
        at: Node | None = node
        while at is not None and at.state is None:
            at = at.parent
        return at

    def _deepest_host(self, node: Node, beyond: int) -> Node | None:
        """The nearest node from `node` up with a copy in host memory and more than `beyond` tokens."""
        at: Node | None = node
        while at is not None and at.key_len > beyond and at.host is None:
            at = at.parent
        return at if at is not None and at.key_len > beyond else None

    def _split(self, lower: Node, at: int) -> Node:
        """Cut the edge of `lower` after `at` tokens; returns the new node above, which owns the first `at`.

        `lower` stays the same node with the same key. What it carried stays with it; the KV of the new node
        is pinned by whoever pinned that of `lower`.
        """
        assert lower.parent is not None
        upper = self._new_node(lower.parent, lower.edge[:at], lower.recency)
        lower.edge = lower.edge[at:]
        lower.parent = upper
        upper.children[lower.edge[: self.page_size]] = lower
        self._split_locks(upper, lower)
        self._split_state(upper, lower)
        self._touch(lower)
        return upper

    def _split_locks(self, upper: Node, lower: Node) -> None:
        """Every holder of `lower` holds the KV above it, hence that of `upper`; state locks stay below."""
        upper.kv_lock = lower.kv_lock

    def _split_state(self, upper: Node, lower: Node) -> None:
        """The state absorbed the whole key of `lower`, so it stays there and `upper` gets none."""

    def _meet_state(self, node: Node) -> None:
        """An insert found a state already at its key: that counts as a use."""
        self.refresh(node)

    def _pin_state(self, node: Node) -> None:
        node.state_lock += 1
        self._touch(node)

    def _unpin_state(self, node: Node) -> None:
        node.state_lock -= 1
        self._touch(node)

    def _pin_kv(self, node: Node) -> None:
        at: Node | None = node
        while at is not None:
            at.kv_lock += 1
            self._touch(at)
            at = at.parent

    def _unpin_kv(self, node: Node) -> None:
        at: Node | None = node
        while at is not None:
            if at.kv_lock < 1:
                raise RuntimeError(
                    f"{at!r} has no KV lock left, though {node!r} below it was locked: a lock was lost"
                )
            at.kv_lock -= 1
            self._touch(at)
            at = at.parent

    def _may_evict_state(self, node: Node) -> bool:
        return node.state_lock == 0

    def _may_evict_kv(self, leaf: Node) -> bool:
        return leaf.kv_lock == 0

    def _is_bare(self, node: Node) -> bool:
        """Nothing keeps the node: no state or copy of one, no children, no lock. The root always stays."""
        kept = node.state is not None or node.host is not None or node.children or node.kv_lock
        return not kept and node is not self.root

    def _remove_branch(self, leaf: Node) -> list[Node]:
        """Remove a leaf without a state, and upwards every ancestor that this leaves bare."""
        removed = [leaf]
        above = self._remove_leaf(leaf)
        while self._is_bare(above):
            removed.append(above)
            above = self._remove_leaf(above)
        return removed

    def _check_key(self, key: Tokens) -> None:
        if not key:
            raise ValueError("the key is empty; expected at least one page: insert nothing instead")
        if len(key) % self.page_size:
            whole = len(key) - len(key) % self.page_size
            raise ValueError(
                f"the key has {len(key)} tokens; "
                f"expected a multiple of the page of {self.page_size}: cut it to {whole}"
            )

    def _check_slot(self, state: int | None) -> None:
        if state in self._slots:
            owner = next(node for node in self._lru.values() if node.state == state)
            raise ValueError(
                f"slot {state} is already in the tree, at {owner!r}; expected a slot that the tree does not "
                "own: insert a copy in a slot of its own"
            )


def _check_amount(amount: int, unit: str) -> None:
    if amount < 0:
        raise ValueError(f"asked to evict {amount} {unit}; expected 0 or more")


def _evicted(
    slots: list[int], tombstoned: list[int], removed: list[Node], hosts: list[int] | None = None
) -> Evicted:
    kv_tokens = sum(len(node.edge) for node in removed)
    gone = tuple(node.id for node in removed)
    return Evicted(tuple(slots), kv_tokens, tuple(tombstoned), gone, tuple(hosts or ()))
