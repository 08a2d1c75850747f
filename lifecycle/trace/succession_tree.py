"""What the events of a step explain about the tree: which nodes come, go, split, and change their state."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from replaylife.lifecycle.events import AdmissionRejected, Evicted, Matched, Published, PublishSkipped
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
    above = {node_id: _new_above(after[node_id], fresh, after) for node_id in before.keys() & after.keys()}
    for node_id in sorted(before.keys() - after.keys() - told.removed):
        yield broken(t, f"node {node_id}", "node", "gone", "still there", "no eviction removed it")
    for node_id in sorted(told.removed & after.keys()):
        yield broken(t, f"node {node_id}", "node", "still there", "gone", "an eviction removed it")
    for node_id in sorted(fresh):
        below = sum(node.parent == node_id for node in after.values())
        splits = below > 1 or any(node_id in uppers for uppers in above.values())
        gone = (before[removed] for removed in told.removed & before.keys())  # the lower half may be evicted
        splits = splits or any(lower.parent == after[node_id].parent for lower in gone)
        if node_id not in told.inserted and not splits:
            yield broken(t, f"node {node_id}", "node", "new", "not there", "nothing was published at it")
        yield from _state(t, None, after[node_id], told)
    for node_id, was in before.items():
        node = after.get(node_id)
        if node is not None and node is not was:
            yield from _changed(t, was, node, told, [after[upper] for upper in above[node_id]])
    yield from _met(t, before, after)
    yield from _consistent(t, after)


def _new_above(node: NodeView, fresh: set[int], after: dict[int, NodeView]) -> list[int]:
    """The new nodes right above one, lowest first: each is the upper half of a split of it."""
    found: list[int] = []
    while node.parent is not None and node.parent in fresh:
        found.append(node.parent)
        node = after[node.parent]
    return found


def _changed(
    t: Transition, was: NodeView, node: NodeView, told: _Told, uppers: list[NodeView]
) -> Iterator[Violation]:
    subject, changed = f"node {node.id}", differences(was, node)
    if "key" in changed:
        found, expected = (f"of {view.key.length} tokens" for view in (node, was))
        yield broken(t, subject, "key", f"{found}, another", expected, "a node keeps its key")
    if "parent" in changed:
        if not uppers or uppers[-1].parent != was.parent:
            why = "only a new node may come between"
            yield broken(t, subject, "parent", node.parent, was.parent, why)
    elif "first_page" in changed:
        old, new = (f"of {len(view.first_page)} tokens, {_ids(view.first_page)}" for view in (was, node))
        yield broken(t, subject, "first_page", new, old, "only a split moves it")
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


def _met(t: Transition, before: dict[int, NodeView], after: dict[int, NodeView]) -> Iterator[Violation]:
    """A node that a prompt meets has a state of the length reported, and is pinned: it keeps it."""
    for event in t.events:
        if not isinstance(event, Matched | AdmissionRejected) or event.node is None:
            continue
        was, node, kind = before.get(event.node), after.get(event.node), type(event).__name__
        outside = was is not None and was.state is None and t.before.host_copy(was.id) is not None
        if was is None or (was.state is None and not outside):
            yield broken(t, f"node {event.node}", kind, "names it", "a node with a state", "it was not one")
        elif isinstance(event, Matched) and event.state_len != was.key.length:
            why = "the key of the node covers"
            yield broken(t, f"node {was.id}", "Matched.state_len", event.state_len, was.key.length, why)
        elif node is None or (node.state != was.state and not outside):
            found = _slot(None if node is None else node.state)
            why = "it was pinned until the admission was decided"
            yield broken(t, f"node {was.id}", f"{kind}.node", found, _slot(was.state), why)


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
