"""Performs the actions about checkpoints outside the pool, and about requests that are not running."""

from __future__ import annotations

from collections.abc import Mapping

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
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.store import StateStore
from replaylife.radix import Node


class OutsideActions:
    """Says which request an action has touched, and whether that one has left with its copy."""

    def __init__(self, store: StateStore, tier: HostTier, requests: Mapping[str, Request]) -> None:
        self._store, self._tier, self._requests = store, tier, requests

    def perform(self, action: Action) -> tuple[str | None, Request | None]:
        """Perform an action that is enabled; return the request touched, and the one that has left."""
        match action:
            case Offload(node):
                self._tier.offload(self._node(node))
            case Load(node):
                self._tier.load(self._node(node))
            case Transfer(name):
                self._tier.transfer(self._requests[name])
                return name, None
            case FinishCopy(of):
                return None, self._tier.finish(of)
            case AbortCopy(of):
                self._tier.abort(of)
                return of.removeprefix("request ") if of.startswith("request ") else None, None
            case EvictHost(count):
                self._store.evict_hosts(count)
            case Cancel(name):
                self._tier.cancel(name)
            case EndSession(name, tokens):
                self._tier.end_session(name)
                self._store.release_branch(tokens)
        return None, None

    def _node(self, node_id: int) -> Node:
        node = self._store.tree.find(node_id)
        assert node is not None
        return node
