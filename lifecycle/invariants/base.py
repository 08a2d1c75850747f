"""What an invariant is, and how it picks what to look at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar

from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import NodeView, RequestView, SlotView, Snapshot, Transition, Violation
from replaylife.pool import Fold


class Invariant(ABC):
    """A claim that holds in every state, or across every transition, of a correct engine.

    ``id`` is its name, ``claim`` one sentence; ``from_tensors`` marks those judged from measurements. Checks
    read snapshots and events only, so they hold for any engine. They look at the views that the action
    changed; with ``t.changed`` unset they look at all.
    """

    id: ClassVar[str]
    claim: ClassVar[str]
    from_tensors: ClassVar[bool] = False

    def applies_to(self, capabilities: Capabilities) -> bool:  # noqa: ARG002
        """Whether an engine with these capabilities can be judged by this claim."""
        return True

    @abstractmethod
    def violations(self, t: Transition) -> Iterable[Violation]:
        """Return every violation in the state after ``t``, or of ``t`` itself."""

    def broken(self, subject: str, found: str, expected: str, *proof: str) -> Violation:
        """Return a violation whose proof ends in the contradiction with this claim."""
        return Violation(
            self.id, subject, found, expected, (*proof, f"Contradiction with {self.id}: {self.claim}.")
        )


def slots_of(t: Transition) -> Iterator[SlotView]:
    """Yield the slots to look at: the changed ones, or all."""
    if t.changed is None:
        yield from t.after.slots
    else:
        size = len(t.after.slots)
        yield from (t.after.slots[index] for index in sorted(t.changed.slots) if 0 <= index < size)


def nodes_of(t: Transition) -> tuple[NodeView, ...]:
    """Return the nodes to look at: those that changed themselves or whose slot did, or all."""
    if t.changed is None:
        return t.after.nodes
    global _looked_at  # several invariants ask the same of one transition
    of, nodes = _looked_at
    if of is not t:
        ids, slots = t.changed.nodes, t.changed.slots
        untouched = not ids and t.after.nodes is t.before.nodes and not _tree_owns(t.after, slots)
        nodes = (
            ()
            if untouched
            else tuple(node for node in t.after.nodes if node.id in ids or node.state in slots)
        )
        _looked_at = (t, nodes)
    return nodes


def _tree_owns(snapshot: Snapshot, slots: Iterable[int]) -> bool:
    """Whether any of these slots is in the tree: far fewer to ask than there are nodes."""
    size = len(snapshot.slots)
    return any(owner.kind == "tree" for i in slots if 0 <= i < size for owner in snapshot.slots[i].owners)


_looked_at: tuple[Transition | None, tuple[NodeView, ...]] = (None, ())


def requests_of(t: Transition) -> Iterator[RequestView]:
    """Yield the requests to look at: those that changed themselves or whose slot did, or all."""
    for request in t.after.requests:
        changed = t.changed
        if changed is None or request.id in changed.requests or not changed.slots.isdisjoint(request.slots):
            yield request


def slot_view(t: Transition, index: int | None) -> SlotView | None:
    """Return the slot with this index after ``t``; ``None`` where it is no slot of the pool."""
    if index is None or not 0 <= index < len(t.after.slots):
        return None
    return t.after.slots[index]


def tokens_between(start: int, end: int) -> str:
    """Name the tokens of ``[start, end)`` as people count them, from 1."""
    return f"token {end}" if end - start == 1 else f"tokens {start + 1}..{end}"


def compare(found: Fold, expected: Fold) -> tuple[str, str]:
    """Name two different folds so that the difference shows: by length, or by content at equal length."""
    if found.length != expected.length:
        return str(found.length), str(expected.length)
    return f"{found.length} (other tokens)", str(expected.length)
