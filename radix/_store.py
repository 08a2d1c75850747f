"""The bookkeeping beneath the tree's rules: nodes, counters, order of use, and what changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Self

from replaylife.radix._leaves import LeafQueue
from replaylife.radix.node import Node, Tokens


class NodeStore:
    """Keeps a tree of nodes, and with it in O(1) per change: token count, states in order of use, leaves.

    `num_kv_tokens` is the number of KV tokens that the nodes own. `touched` holds the ids of all nodes, the
    root excepted, that are new, changed or gone since `take_touched`.
    """

    def __init__(self, page_size: int = 1) -> None:
        if page_size < 1:
            raise ValueError(
                f"page_size is {page_size}; expected at least 1 token: pass the page of the KV pool"
            )
        self.page_size = page_size
        self.root = Node(0, None, (), 0)
        self.num_kv_tokens = 0
        self.touched: set[int] = set()
        self._clock = 0
        self._next_id = 1
        self._nodes: dict[int, Node] = {0: self.root}
        self._lru: OrderedDict[int, Node] = OrderedDict()  # nodes with a state, least recently used first
        self._slots: set[int] = set()
        self._hosts: dict[int, Node] = {}  # nodes with a copy in host memory, by id
        self._leaves = LeafQueue(self._nodes)

    @property
    def num_states(self) -> int:
        """The number of nodes that carry a state."""
        return len(self._lru)

    def find(self, node_id: int) -> Node | None:
        """The node with that id, or None once it has been removed. Carries a handle over to a clone."""
        return self._nodes.get(node_id)

    def nodes(self) -> Iterator[Node]:
        """All nodes but the root: a parent before its children, siblings in the order of insertion."""
        stack = list(reversed(self.root.children.values()))
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children.values()))

    def lru_states(self) -> Iterator[Node]:
        """The nodes that carry a state, the least recently used first: the order of eviction, locks aside."""
        return iter(self._lru.values())

    def take_touched(self) -> set[int]:
        """Hand over `touched` and start an empty one; nothing else changes."""
        taken, self.touched = self.touched, set()
        return taken

    def refresh(self, node: Node) -> None:
        """Make this node's recency the newest; no other node's changes, neither above nor below."""
        self._check_known(node)
        node.recency = self._tick()
        if node.state is not None:
            self._lru.move_to_end(node.id)
        self._touch(node)

    def clone(self) -> Self:
        """An independent copy: same ids, counters and orders; edges, being immutable, are shared.

        Attributes added by a subclass are carried over as they are: keep those immutable.
        """
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.touched = self.touched.copy()
        twin.root = _copy_node(self.root, None)
        twin._nodes = {0: twin.root}
        pairs = [(self.root, twin.root)]
        while pairs:
            node, copy = pairs.pop()
            for page, child in node.children.items():
                copy.children[page] = twin._nodes[child.id] = _copy_node(child, copy)
                if child.children:
                    pairs.append((child, copy.children[page]))
        twin._lru = OrderedDict((node_id, twin._nodes[node_id]) for node_id in self._lru)
        twin._slots = self._slots.copy()
        twin._hosts = {node_id: twin._nodes[node_id] for node_id in self._hosts}
        twin._leaves = self._leaves.clone(twin._nodes)
        return twin

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def _touch(self, node: Node) -> None:
        if node is not self.root:
            self.touched.add(node.id)

    def _check_known(self, node: Node) -> None:
        if self._nodes.get(node.id) is not node:
            raise ValueError(
                f"{node!r} is not a node of this tree; expected one that was neither removed nor taken "
                "from a clone: match the key again, or look its id up with find()"
            )

    def _new_node(self, parent: Node, edge: Tokens, recency: int) -> Node:
        """Create a node and hang it below `parent` by its first page; counts and queues are left alone."""
        node = Node(self._next_id, parent, edge, recency)
        self._next_id += 1
        self._nodes[node.id] = node
        parent.children[edge[: self.page_size]] = node
        self._touch(node)
        self._touch(parent)
        return node

    def _add_leaf(self, parent: Node, edge: Tokens) -> Node:
        """Add a leaf that owns the KV of `edge`, newest of all, unlocked and without a state."""
        leaf = self._new_node(parent, edge, self._tick())
        self.num_kv_tokens += len(edge)
        self._leaves.push(leaf)
        return leaf

    def _remove_leaf(self, leaf: Node) -> Node:
        """Take out a leaf whose state is gone already, with its KV; returns its parent."""
        parent = leaf.parent
        assert parent is not None
        assert not leaf.children
        assert leaf.state is None
        assert leaf.host is None
        del parent.children[leaf.edge[: self.page_size]]
        del self._nodes[leaf.id]
        self.num_kv_tokens -= len(leaf.edge)
        self._touch(leaf)
        self._touch(parent)
        if not parent.children and parent is not self.root:
            self._leaves.push(parent)
        return parent

    def _attach_state(self, node: Node, slot: int) -> None:
        """Give a slot to a node without a state, as the most recently used; locks and KV are left alone."""
        node.state = slot
        node.recency = self._tick()
        self._lru[node.id] = node
        self._slots.add(slot)
        self._touch(node)

    def _detach_state(self, node: Node) -> int:
        """Take the slot out of a node that has one; recency, locks, KV and the node itself are left alone."""
        slot = node.state
        assert slot is not None
        node.state = None
        del self._lru[node.id]
        self._slots.discard(slot)
        self._touch(node)
        return slot

    def attach_host(self, node: Node, host: int) -> None:
        """Note that a copy of the node's state lies in host memory at ``host``; all else is left alone."""
        self._check_known(node)
        node.host = host
        self._hosts[node.id] = node
        self._touch(node)

    def detach_host(self, node: Node) -> int:
        """Take the copy in host memory out of a node that has one; all else is left alone."""
        host = node.host
        assert host is not None
        node.host = None
        del self._hosts[node.id]
        self._touch(node)
        return host

    def host_nodes(self) -> Iterator[Node]:
        """The nodes with a copy in host memory, in the order in which they got it."""
        return iter(self._hosts.values())


def _copy_node(node: Node, parent: Node | None) -> Node:
    """The same node below another parent, its children left out."""
    copy = Node(node.id, parent, node.edge, node.recency)
    copy.state, copy.host = node.state, node.host
    copy.state_lock = node.state_lock
    copy.kv_lock = node.kv_lock
    return copy
