"""The radix tree and the slots: who claims which tokens, and where their state is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from rich.text import Text

from replaylife.lifecycle.snapshot import NodeView, Snapshot, Transition
from replaylife.view.look import BAD, DIM, GUTTER, STATE, Look, count, shorten, spans, under_gutter
from replaylife.view.places import free_places
from replaylife.view.requests import MAX_NAME, slot_of

MAX_ROWS = 14
MAX_RAILS = 24
LABEL = 7


class Row(NamedTuple):
    """A node and the rails that lead to it."""

    rails: str
    node: NodeView


def rows(nodes: Sequence[NodeView], look: Look) -> list[Row]:
    """Return the nodes from the root down. Only forks are indented, so that a long path stays in sight."""
    known = {node.id for node in nodes}
    children: defaultdict[int | None, list[NodeView]] = defaultdict(list)
    for node in nodes:
        children[node.parent if node.parent in known else None].append(node)
    found: list[Row] = []
    stack = _below("", children[None], look)
    while stack:
        rails, under, node = stack.pop()
        found.append(Row(rails, node))
        stack += _below(under, children[node.id], look)
    return found


def _below(under: str, nodes: Sequence[NodeView], look: Look) -> list[tuple[str, str, NodeView]]:
    """Return (rails of the node, rails below it, node) of siblings, first one last, for a stack."""
    if len(nodes) == 1:
        return [(under, under, nodes[0])]
    signs, last = look.signs, len(nodes) - 1
    return [
        (under + (signs.last if i == last else signs.fork), under + ("  " if i == last else signs.rail), node)
        for i, node in reversed(list(enumerate(nodes)))
    ]


def _signature(snapshot: Snapshot, node: NodeView | None) -> object:
    """What a reader would see change: the place, the key, the state and where its parts stand."""
    if node is None:
        return None
    slot = slot_of(snapshot, node.state)
    parts = None if slot is None else (slot.temporal, slot.conv)
    return node.parent, node.key, node.state, parts


def changed_nodes(t: Transition) -> set[int]:
    """Return the ids of nodes that appeared, disappeared, or changed in a way that shows."""
    if t.changed is not None and not t.changed.nodes:
        states = {node.state for node in t.after.nodes}
        if not states & t.changed.slots:
            return set()
    before = {node.id: _signature(t.before, node) for node in t.before.nodes}
    after = {node.id: _signature(t.after, node) for node in t.after.nodes}
    return {node for node in before.keys() | after.keys() if before.get(node) != after.get(node)}


def _holdings(snapshot: Snapshot) -> object:
    held = [(request.id, request.slot) for request in snapshot.requests]
    return snapshot.free_slots, held


def tree_lines(t: Transition, look: Look, broken: Collection[str]) -> Iterator[Text]:
    """Yield the tree and the slots if they changed; nodes in ``broken`` (as ``node 3``) in red."""
    changed = changed_nodes(t)
    if changed:
        yield from _tree(t, look, broken, changed)
    if changed or _holdings(t.before) != _holdings(t.after):
        yield from under_gutter(slots_line(t.after, look), look, deeper=LABEL)


def _tree(t: Transition, look: Look, broken: Collection[str], changed: set[int]) -> Iterator[Text]:
    drawn = rows(t.after.nodes, look)
    shown = _worth_showing(drawn, changed, broken)
    widths = _Widths.of(drawn)
    label = Text("tree".ljust(LABEL), DIM)
    hidden = 0
    for index, row in enumerate(drawn):
        if index in shown:
            if hidden:
                yield _margin(label).append(f"{look.signs.more} {count(hidden, 'more node')}", DIM)
                label, hidden = Text(" " * LABEL), 0
            yield _margin(label).append_text(_node(t, row, look, widths, broken))
            label = Text(" " * LABEL)
        else:
            hidden += 1
    if hidden:
        yield _margin(label).append(f"{look.signs.more} {count(hidden, 'more node')}", DIM)
    if not drawn:
        yield _margin(label).append("empty", DIM)


def _margin(label: Text) -> Text:
    return Text(" " * GUTTER).append_text(label)


def _worth_showing(drawn: Sequence[Row], changed: set[int], broken: Collection[str]) -> set[int]:
    """All rows of a small tree; of a large one those that changed or are broken, with their neighbours."""
    if len(drawn) <= MAX_ROWS:
        return set(range(len(drawn)))
    due = {i for i, row in enumerate(drawn) if row.node.id in changed or f"node {row.node.id}" in broken}
    return {i + near for i in due for near in (-1, 0, 1) if 0 <= i + near < len(drawn)} | {0}


class _Widths(NamedTuple):
    name: int
    length: int
    slot: int

    @classmethod
    def of(cls, drawn: Sequence[Row]) -> _Widths:
        """Return how wide each column must be for its widest entry."""
        name = max(
            (min(len(row.rails), MAX_RAILS) + len(f"* node {row.node.id}") for row in drawn), default=1
        )
        length = max((len(str(row.node.key.length)) for row in drawn), default=1)
        slot = max((len(str(row.node.state)) for row in drawn if row.node.state is not None), default=1)
        return cls(name, length, slot)


def _node(t: Transition, row: Row, look: Look, widths: _Widths, broken: Collection[str]) -> Text:
    node, slot = row.node, slot_of(t.after, row.node.state)
    rails = row.rails if len(row.rails) <= MAX_RAILS else look.signs.cut + row.rails[1 - MAX_RAILS :]
    style = BAD if f"node {node.id}" in broken else STATE
    sign = look.signs.no_state if slot is None else look.signs.state
    text = Text.assemble((rails, DIM), (f"{sign} node {node.id}", style))
    text.pad_right(max(0, widths.name - text.cell_len))
    text.append("  key ", DIM).append(f"{node.key.length:>{widths.length}}")
    if slot is None:
        text.append("  no state", DIM)
    else:
        apart = slot.temporal.length != node.key.length
        text.append("  state ", DIM)
        text.append(f"{slot.temporal.length:>{widths.length}}", style if apart else STATE)
        if slot.conv.length != slot.temporal.length:
            text.append("  conv ", DIM).append(str(slot.conv.length), style)
        text.append("  slot ", DIM).append(f"{node.state:>{widths.slot}}")
    note = _note(t, node)
    return text.append(f"  {note}", "italic") if note else text


def _note(t: Transition, node: NodeView) -> str:
    was = t.before.node(node.id)
    if was is None:
        return "new"
    if was.state is not None and node.state is None:
        return "state gone"
    if was.state is None and node.state is not None:
        return "state new"
    return "" if _signature(t.before, was) == _signature(t.after, node) else "changed"


def slots_line(snapshot: Snapshot, look: Look) -> Text:
    """Say who holds which slots, and what is free of slots and key-value tokens."""
    holding = [request for request in snapshot.requests if request.slot is not None]
    holders = [
        f"{shorten(look.signs, request.id, MAX_NAME)} {spans([request.slot, *request.track_slots])}"
        for request in holding
        if request.slot is not None
    ]
    if len(holders) > 6:
        holders = [*holders[:6], f"and {len(holders) - 6} more requests"]
    tree = spans(node.state for node in snapshot.nodes if node.state is not None)
    parts = [*holders, f"tree {tree}"] if tree else holders
    parts.append(f"{len(snapshot.free_slots)} of {len(snapshot.slots) - 1} free")
    parts += free_places(snapshot)
    parts.append(f"key-value {snapshot.kv_free} of {snapshot.kv_capacity} free")
    return Text.assemble(("slots".ljust(LABEL), DIM), f" {look.signs.dot} ".join(parts))
