"""Claims about the radix tree: locks, order of eviction, shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import attrgetter

from replaylife.lifecycle.events import AdmissionRejected, Evicted, Matched, Published, PublishSkipped
from replaylife.lifecycle.invariants.base import Invariant, nodes_of
from replaylife.lifecycle.snapshot import NodeView, Snapshot, Transition, Violation


class LocksBalanced(Invariant):
    """Lock counts equal the holders."""

    id = "locks-balanced"
    claim = (
        "a node's lock counts equal the requests and copies that hold it, and those that hold a node below"
    )

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Count the holders of every node again."""
        concerned = _lock_concerned(t)
        if not concerned:
            return
        states, paths = _holders(t.after)
        for node in concerned:
            held, below = states.get(node.id, 0), paths.get(node.id, 0)
            if (node.state_lock, node.kv_lock) != (held, below):
                yield self.broken(
                    f"node {node.id}",
                    f"state lock {node.state_lock}, key-value lock {node.kv_lock}",
                    f"{held} and {below}",
                    f"After step {t.step} ({t.action}) {held} requests hold node {node.id} and {below} it or "
                    "a node below.",
                    f"Its counts say {node.state_lock} and {node.kv_lock}.",
                    "Then it is never evicted again."
                    if node.kv_lock >= below
                    else "Then it can be evicted while it is in use.",
                )


class LockedSurvives(Invariant):
    """What a request holds stays."""

    id = "locked-survives"
    claim = "nothing locked is evicted: the node that a request holds keeps its state and its key-value"

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check the node of every request that held it before and still does."""
        for request in t.after.requests:
            if t.changed is not None and request.locked not in t.changed.nodes:
                continue
            was = t.before.request(request.id)
            if was is None or request.locked is None or was.locked != request.locked:
                continue
            before, after = t.before.node(request.locked), t.after.node(request.locked)
            if before is None or (after is not None and after.state == before.state):
                continue
            lost = "is gone" if after is None else f"has lost its state (slot {before.state})"
            yield self.broken(
                f"node {request.locked}",
                lost,
                f"held by request {request.id}",
                f"Let request {request.id} hold node {request.locked} before and after step {t.step}.",
                f"Step {t.step} ({t.action}) was about something else, and the node {lost}.",
                "Then what the request still reads can be written by another.",
            )


class RecencyFollowsUse(Invariant):
    """The order of eviction is the order of use."""

    id = "recency-follows-use"
    claim = "only the state that is used becomes the most recent, and eviction takes the least recent one"

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check which recencies moved, and what was evicted."""
        if t.changed is None or t.changed.nodes:
            yield from self._moved(t)
            yield from self._evicted(t)

    def _moved(self, t: Transition) -> Iterable[Violation]:
        nodes = nodes_of(t)
        if not nodes:
            return
        before = {node.id: node.recency for node in t.before.nodes}
        moved = [node for node in nodes if before.get(node.id, node.recency) != node.recency]
        used = set(_used(t)) if moved else ()
        for node in moved:
            if node.id not in used:
                yield self.broken(
                    f"node {node.id}",
                    f"recency {before[node.id]} -> {node.recency}",
                    "unchanged",
                    f"Step {t.step} ({t.action}) used {_list(used)}.",
                    f"Node {node.id} (key {node.key.length}) became more recent without being used.",
                    "Then states that nobody reuses outlive those that are reused.",
                )

    def _evicted(self, t: Transition) -> Iterable[Violation]:
        evictions = [event for event in t.events if type(event) is Evicted and event.purpose == "state"]
        gone = {slot for event in evictions for slot in event.slots} if evictions else ()
        if not gone:
            return
        victims = [node for node in t.before.nodes if node.state in gone]
        spared = {*_used(t), *(e.node for e in t.events if isinstance(e, AdmissionRejected))}
        kept = {node.id for node in t.after.nodes if node.state is not None}
        for victim in victims:
            older = [
                node
                for node in t.before.nodes
                if node.id in kept
                and node.state is not None
                and node.state_lock == 0
                and node.recency < victim.recency
                and node.id not in spared
            ]
            if older:
                yield self.broken(
                    f"node {victim.id}",
                    f"evicted at recency {victim.recency}",
                    f"node {older[0].id} at {older[0].recency} goes first",
                    f"Step {t.step} ({t.action}) evicted the state of node {victim.id}.",
                    f"Node {older[0].id} was used longer ago and nobody pins it, yet it stayed.",
                )


class TreeWellFormed(Invariant):
    """The tree is a radix tree, and its states stay where they were published."""

    id = "tree-well-formed"
    claim = "edges are not empty, siblings differ, a state keeps its key, the LRU list holds the states"

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check shape, LRU list and the key of every state."""
        if t.changed is None or t.changed.nodes or t.after.lru is not t.before.lru:
            yield from self._shape(t)
            yield from self._lru(t)
            yield from self._keys(t)

    def _shape(self, t: Transition) -> Iterable[Violation]:
        nodes = nodes_of(t)
        alone = len({(node.parent, node.first_page) for node in t.after.nodes}) == len(t.after.nodes)
        if alone and all(node.kv_tokens > 0 for node in nodes):
            return
        firsts = Counter((node.parent, node.first_page) for node in t.after.nodes)
        for node in nodes:
            twins = firsts[node.parent, node.first_page]
            if node.kv_tokens < 1 or twins > 1:
                yield self.broken(
                    f"node {node.id}",
                    f"edge of {node.kv_tokens} tokens, {twins} siblings starting alike",
                    "a non-empty edge, its first page unlike its siblings'",
                    f"After step {t.step} ({t.action}) node {node.id} of key {node.key.length} is so.",
                    "Then a match finds one of them, and the other is dead weight.",
                )

    def _lru(self, t: Transition) -> Iterable[Violation]:
        carriers = sorted(node.id for node in t.after.nodes if node.state is not None)
        if sorted(t.after.lru) != carriers:
            yield self.broken(
                "LRU list",
                f"nodes {_list(t.after.lru)}",
                f"nodes {_list(carriers)}",
                f"After step {t.step} ({t.action}) the nodes that carry a state are {_list(carriers)}.",
                "Then a state is never evicted, or a node without one is.",
            )

    def _keys(self, t: Transition) -> Iterable[Violation]:
        keys = {node.state: node for node in t.before.nodes if node.state is not None}
        rewritten = {event.slot for event in t.events if isinstance(event, Published)}
        for node in nodes_of(t):
            was = None if node.state is None else keys.get(node.state)
            if was is not None and was.key != node.key and node.state not in rewritten:
                yield self.broken(
                    f"node {node.id}",
                    f"slot {node.state} under a key of {node.key.length}",
                    f"its key of {was.key.length}",
                    f"Let slot {node.state} be the state of node {was.id}, key {was.key.length}.",
                    f"Step {t.step} ({t.action}) moved it to node {node.id}, key {node.key.length}, without "
                    "writing it.",
                    "Then a match of that length continues from a state of another length.",
                )


def _holders(snapshot: Snapshot) -> tuple[dict[int, int], dict[int, int]]:
    """Count, from requests and copies in flight alone, who holds each node, and who it or one below."""
    parents = {node.id: node.parent for node in snapshot.nodes}
    held = [request.locked for request in snapshot.requests] + [copy.locked for copy in snapshot.copies]
    states: dict[int, int] = {}
    paths: dict[int, int] = {}
    for at in held:
        if at is not None:
            states[at] = states.get(at, 0) + 1
        while at is not None:
            paths[at] = paths.get(at, 0) + 1
            at = parents.get(at)
    return states, paths


def _lock_concerned(t: Transition) -> list[NodeView]:
    """Return the nodes whose lock counts may be wrong now: the changed, and those whose holders changed.

    A holder that leaves without unlocking changes no node, so changed requests count too: the nodes that they
    held or hold, and all above those.
    """
    concerned = {node.id for node in nodes_of(t)}
    if t.before.copies != t.after.copies:
        concerned |= {copy.locked for copy in (*t.before.copies, *t.after.copies) if copy.locked is not None}
    held, holds = list(map(_HELD, t.before.requests)), list(map(_HELD, t.after.requests))
    if t.changed is not None and held != holds:
        parents = {node.id: node.parent for node in t.after.nodes}
        for _, at in set(held) ^ set(holds):
            while at is not None and at not in concerned:
                concerned.add(at)
                at = parents.get(at)
    return [node for node in t.after.nodes if node.id in concerned] if concerned else []


_HELD = attrgetter("id", "locked")


def _used(t: Transition) -> Iterator[int]:
    """The nodes whose state this action used: matched and admitted, published, or published again."""
    for event in t.events:
        probe = isinstance(event, Matched) and event.request is None
        if isinstance(event, Matched | Published | PublishSkipped) and not probe and event.node is not None:
            yield event.node


def _list(nodes: Iterable[int]) -> str:
    return ", ".join(str(node) for node in sorted(nodes)) or "none"
