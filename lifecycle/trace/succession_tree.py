"""What the events of a step explain about the tree: which nodes come, go, split, and change their state."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from replaylife.lifecycle.events import Evicted, Published, PublishSkipped
from replaylife.lifecycle.snapshot import NodeView, Transition, Violation
from replaylife.lifecycle.trace.succession import broken, differences


class _Told:
    """What the events of a step say about nodes."""

    def __init__(self, t: Transition) -> None:
        evictions = [event for event in t.events if isinstance(event, Evicted)]
        self.removed = {node for event in evictions for node in event.removed}
        self.tombstoned = {node for event in evictions for node in event.tombstoned}
        self.evicted = {slot for event in evictions for slot in event.slots}
        self.published = {event.node: event for event in t.events if isinstance(event, Published)}
        skipped = {event.node for event in t.events if isinstance(event, PublishSkipped)}
        self.inserted = {node for node in skipped if node is not None} | self.published.keys()


def tree(t: Transition) -> Iterator[Violation]:
    """Check every node that came, went or changed, and the order of eviction."""
    told = _Told(t)
    before = {node.id: node for node in t.before.nodes}
    after = {node.id: node for node in t.after.nodes}
    fresh = after.keys() - before.keys()
    for node_id in sorted(before.keys() - after.keys() - told.removed):
        yield broken(t, f"node {node_id}", "node", "gone", "still there", "no eviction removed it")
    for node_id in sorted(told.removed & after.keys()):
        yield broken(t, f"node {node_id}", "node", "still there", "gone", "an eviction removed it")
    for node_id in sorted(fresh):
        yield from _new(t, after[node_id], told, before, after)
    for node_id, was in before.items():
        node = after.get(node_id)
        if node is not None and node is not was:
            yield from _changed(t, was, node, told, fresh, after)
    yield from _consistent(t, after)


def _new(
    t: Transition, node: NodeView, told: _Told, before: dict[int, NodeView], after: dict[int, NodeView]
) -> Iterator[Violation]:
    """A new node is what was published, or the upper half of a split, which carries no state."""
    splits = any(below.parent == node.id and below.id in before for below in after.values())
    if node.id not in told.inserted and not splits:
        yield broken(t, f"node {node.id}", "node", "new", "not there", "nothing was published at it")
    yield from _state(t, None, node, told)


def _changed(
    t: Transition, was: NodeView, node: NodeView, told: _Told, fresh: set[int], after: dict[int, NodeView]
) -> Iterator[Violation]:
    subject, changed = f"node {node.id}", differences(was, node)
    if "key" in changed:
        found, expected = (f"of {view.key.length} tokens" for view in (node, was))
        yield broken(t, subject, "key", f"{found}, another", expected, "a node keeps its key")
    if "parent" in changed:
        upper = after.get(node.parent) if node.parent is not None else None
        if upper is None or upper.id not in fresh or upper.parent != was.parent:
            why = "only a new node may come between"
            yield broken(t, subject, "parent", node.parent, was.parent, why)
    elif "first_token" in changed:
        yield broken(t, subject, "first_token", node.first_token, was.first_token, "only a split moves it")
    if node.state != was.state:
        yield from _state(t, was.state, node, told)
    elif "published" in changed:
        yield broken(t, subject, "published", node.published, was.published, "it took no state in this step")


def _state(t: Transition, was: int | None, node: NodeView, told: _Told) -> Iterator[Violation]:
    """A state comes by a Published event, in this step, and goes by an Evicted one."""
    subject, event = f"node {node.id}", told.published.get(node.id)
    if was is not None and not (node.id in told.tombstoned and was in told.evicted):
        expected = f"slot {was}"
        yield broken(t, subject, "state", _slot(node.state), expected, "no eviction took it")
    if node.state is not None and (event is None or event.slot != node.state):
        expected = "none" if event is None else f"slot {event.slot}"
        yield broken(t, subject, "state", _slot(node.state), expected, "as Published events say")
    if event is not None and node.state is not None and node.published != t.step:
        yield broken(t, subject, "published", node.published, t.step, "the step in which it took its state")
    if event is not None and event.key_len != node.key.length:
        why = "the key of the node covers"
        yield broken(t, subject, "Published.key_len", event.key_len, node.key.length, why)


def _slot(slot: int | None) -> str:
    return "none" if slot is None else f"slot {slot}"


def _consistent(t: Transition, after: dict[int, NodeView]) -> Iterator[Violation]:
    """Within one snapshot: tokens owned are what the key adds to the parent's; the LRU list is by recency."""
    for node in t.after.nodes:
        above = 0 if node.parent is None else after[node.parent].key.length
        if node.kv_tokens != node.key.length - above:
            why = f"its key of {node.key.length} less the {above} above it"
            yield broken(t, f"node {node.id}", "kv_tokens", node.kv_tokens, node.key.length - above, why)
    order = [after[node_id].recency for node_id in t.after.lru if node_id in after]
    if any(earlier > later for earlier, later in pairwise(order)):
        ordered = sorted((n for n in t.after.lru if n in after), key=lambda node: after[node].recency)
        yield broken(t, "LRU list", "order", _ids(t.after.lru), _ids(ordered), "by recency it is")


def _ids(nodes: tuple[int, ...] | list[int]) -> str:
    shown = ", ".join(map(str, nodes[:12]))
    return f"{shown}, …" if len(nodes) > 12 else shown
