"""Faults in the radix tree: locks, eviction, splits, recency, and the key a state is filed under."""

from __future__ import annotations

from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.store import StateStore
from replaylife.radix import Node, RadixTree


class _UnlockMissing(StateStore):
    def release(self, request: Request) -> None:
        request.locked = None
        super().release(request)


class _LocksIgnored(RadixTree):
    def _may_evict_state(self, node: Node) -> bool:  # noqa: ARG002
        return True


class _StateStaysUp(RadixTree):
    def _split_state(self, upper: Node, lower: Node) -> None:
        if lower.state is not None:
            self._attach_state(upper, self._detach_state(lower))


class _AncestorsRefreshed(RadixTree):
    def refresh(self, node: Node) -> None:
        super().refresh(node)
        above = node.parent
        while above is not None and above.parent is not None:
            if above.state is not None:
                super().refresh(above)
            above = above.parent


class _KeyFloored(StateStore):
    def _key(self, request: Request, length: int) -> tuple[int, ...]:
        return super()._key(request, max(length - length % 8, min(length, 8)))


class _AncestorsUnlocked(RadixTree):
    def _unpin_state(self, node: Node) -> None:
        super()._unpin_state(node)
        above = node.parent
        while above is not None:
            if above.state_lock:
                super()._unpin_state(above)
            above = above.parent


UNLOCK_MISSING = Fault(
    id="unlock-missing",
    title="A finished request keeps its lock",
    source="https://github.com/sgl-project/sglang/pull/27038",
    mechanism=(
        "Lock and unlock are not symmetric: the request is gone, its lock on the node is not. The node and "
        "the path above it can never be evicted again."
    ),
    right_value="lock counts equal to the requests that hold the node",
    scenario="unlock-missing",
    mixin=_UnlockMissing,
    ledger=("locks-balanced",),
    numeric=(),
    damage="a leak: no state is wrong, one can never be evicted again",
)

EVICT_IGNORES_LOCKS = Fault(
    id="evict-ignores-locks",
    title="A locked state is evicted",
    source="https://github.com/sgl-project/sglang/pull/27038",
    mechanism=(
        "The lock count of a node that is in use reads as zero, so that eviction takes its state: a copy "
        "that is still to run reads a slot that belongs to another request."
    ),
    right_value="the next unlocked state in order of use",
    scenario="evict-ignores-locks",
    mixin=_LocksIgnored,
    ledger=("locked-survives", "cow-source-pinned"),
    numeric=(),
)

SPLIT_KEEPS_STATE_ON_PARENT = Fault(
    id="split-keeps-state-on-parent",
    title="A split leaves the state on the upper half",
    source="https://github.com/sgl-project/sglang/pull/11214",
    mechanism=(
        "When a second prompt diverges inside an edge the edge is split. The state belongs to the end of "
        "the edge, the lower half; left on the upper half it is filed under a shorter key."
    ),
    right_value="the state stays on the child, the split point carries none",
    scenario="split-keeps-state-on-parent",
    mixin=_StateStaysUp,
    ledger=("key-matches-state", "tree-well-formed"),
    numeric=("state-matches-oracle",),
)

MATCH_REFRESHES_ANCESTORS = Fault(
    id="match-refreshes-ancestors",
    title="A hit refreshes every ancestor's state",
    source="https://github.com/sgl-project/sglang/pull/31643",
    mechanism=(
        "Only the deepest state on the path is used by a hit. Refreshing those above it too keeps interior "
        "states that nobody reads, and evicts another conversation's."
    ),
    right_value="only the state that is copied becomes the most recent",
    scenario="match-refreshes-ancestors",
    mixin=_AncestorsRefreshed,
    ledger=("recency-follows-use",),
    numeric=(),
    damage="an order: no state is wrong, the next eviction takes one that is still of use",
)

INSERT_STAMPS_SHORTER_KEY = Fault(
    id="insert-stamps-shorter-key",
    title="A state is filed under a key floored to a coarser grid",
    source="https://github.com/sgl-project/sglang/pull/34760",
    mechanism=(
        "State length and key length are rounded on different grids: the state stands at the chunk's end, "
        "its key is floored to the tree's unit. A hit on that key feeds the tokens between them again."
    ),
    right_value="a state only under the key of exactly its tokens",
    scenario="insert-stamps-shorter-key",
    mixin=_KeyFloored,
    ledger=("key-matches-state",),
    numeric=("state-matches-oracle",),
)

RELEASE_UNLOCKS_ANCESTORS = Fault(
    id="release-unlocks-ancestors",
    title="A release takes the locks of other requests above it away",
    source="https://github.com/sgl-project/sglang/pull/27038",
    mechanism=(
        "A lock pins the state of one node. Its release is given no boundary, walks to the root and counts "
        "down on the way: a node that another request still uses reads as unlocked."
    ),
    right_value="node 1 keeps the lock of request a",
    scenario="release-unlocks-ancestors",
    mixin=_AncestorsUnlocked,
    ledger=("locks-balanced",),
    numeric=(),
    damage="a lost lock: its owner's own release fails before any reply is wrong",
)
