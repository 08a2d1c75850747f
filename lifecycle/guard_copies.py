"""Which copies between slots and places outside the pool can begin and end, and why others cannot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from replaylife.lifecycle.actions import (
    AbortCopy,
    Action,
    Cancel,
    EndSession,
    EvictHost,
    FinishCopy,
    Load,
    Offload,
    Transfer,
)
from replaylife.lifecycle.host_tier import HostTier
from replaylife.lifecycle.protocol import ActionRefused
from replaylife.lifecycle.request import Request
from replaylife.radix import Node, RadixTree


class CopyGuard:
    """Looks at tree, requests and copies in flight; changes nothing."""

    def __init__(self, tree: RadixTree, requests: Mapping[str, Request], tier: HostTier) -> None:
        self._tree, self._requests, self._tier = tree, requests, tier

    def candidates(self) -> Iterable[Action]:
        """Return actions about copies and waiting requests, some of which are not enabled."""
        tier = self._tier
        if tier.host is not None:
            yield from (Offload(node.id) for node in self._tree.lru_states())
            for node in self._tree.host_nodes():
                yield Load(node.id)
            if next(self._tree.host_nodes(), None) is not None:
                yield EvictHost(1)
        if tier.peer is not None:
            yield from (Transfer(name) for name in self._requests)
        for of in tier.copies:
            yield from (FinishCopy(of), AbortCopy(of))
        if tier.host is not None or tier.peer is not None:
            yield from (Cancel(name) for name in sorted(tier.queue - self._requests.keys()))

    def require(self, action: Action) -> None:
        """Raise :class:`ActionRefused`, saying why and what to do, if the action is not enabled."""
        match action:
            case Offload(node_id):
                node = self._require_node(action, node_id)
                self._refuse_if(node.state is None, action, "the node carries no state")
                self._refuse_if(
                    node.host is not None, action, "a copy of its state is in host memory already"
                )
            case Load(node_id):
                node = self._require_node(action, node_id)
                self._refuse_if(node.host is None, action, "no copy of its state is in host memory")
                self._refuse_if(node.state is not None, action, "the node carries a state already")
            case Transfer():
                self._refuse_if(self._tier.peer is None, action, "need cache.peer_slots of at least 1")
            case FinishCopy(of) | AbortCopy(of):
                known = ", ".join(self._tier.copies) or "none"
                self._refuse_if(
                    of not in self._tier.copies, action, f"no such copy is in flight (in flight: {known})"
                )
            case EvictHost(count):
                self._require_host(action)
                self._refuse_if(count < 1, action, "need at least 1")
            case Cancel(name):
                self._refuse_if(name in self._requests, action, "the request is running; abort it")
                known = ", ".join(sorted(self._tier.queue)) or "none"
                why = f"no such request is waiting (waiting: {known})"
                self._refuse_if(name not in self._tier.queue, action, why)
            case EndSession(name, tokens):
                self._refuse_if(name in self._requests, action, "the request is running; finish it first")
                self._refuse_if(not tokens, action, "need at least one token")

    def _require_host(self, action: Action) -> None:
        self._refuse_if(self._tier.host is None, action, "need cache.host_slots of at least 1")

    def _require_node(self, action: Action, node_id: int) -> Node:
        self._require_host(action)
        node = self._tree.find(node_id)
        if node is None or node is self._tree.root:
            known = ", ".join(str(other.id) for other in self._tree.nodes()) or "none"
            raise ActionRefused(f"{action}: there is no such node (nodes: {known})")
        busy = f"node {node_id}" in self._tier.copies
        self._refuse_if(busy, action, "a copy of it is in flight; finish or abort it first")
        return node

    @staticmethod
    def _refuse_if(refused: bool, action: Action, why: str) -> None:
        if refused:
            raise ActionRefused(f"{action}: {why}")
