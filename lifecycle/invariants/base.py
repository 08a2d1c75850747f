"""What an invariant is, and how it picks what to look at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ClassVar, TypeVar

from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import NodeView, RequestView, SlotView, Snapshot, Transition, Violation
from replaylife.pool import Fold

V = TypeVar("V")


class Invariant(ABC):
    """A claim that holds in every state, or across every transition, of a correct engine.

    ``id`` is its name, ``claim`` one sentence; ``from_tensors`` marks those judged from measurements. Checks
    read snapshots and events only, so they hold for any engine. They look at the views that the action
    changed; with ``t.changed`` unset they look at all. A claim about events alone names in ``only_after``
    those without which it cannot be broken, and need not be asked; one about some kinds of views names in
    ``judges`` the functions that pick them, and is asked where one of them picks any. Empty: always asked.
    """

    id: ClassVar[str]
    claim: ClassVar[str]
    from_tensors: ClassVar[bool] = False
    only_after: ClassVar[frozenset[type]] = frozenset()
    judges: ClassVar[tuple[Callable[[Transition], object], ...]] = ()

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


def _asked_once(views: Callable[[Transition], tuple[V, ...]]) -> Callable[[Transition], tuple[V, ...]]:
    """Remember the last answer: several invariants ask the same of one transition."""
    of: Transition | None = None
    last: tuple[V, ...] = ()

    @wraps(views)
    def remembered(t: Transition) -> tuple[V, ...]:
        nonlocal of, last
        if of is not t:
            of, last = t, views(t)
        return last

    return remembered


@_asked_once
def slots_of(t: Transition) -> tuple[SlotView, ...]:
    """Return the slots to look at: the changed ones, or all."""
    if t.changed is None:
        return t.after.slots
    size = len(t.after.slots)
    return tuple([t.after.slots[index] for index in sorted(t.changed.slots) if 0 <= index < size])


@_asked_once
def nodes_of(t: Transition) -> tuple[NodeView, ...]:
    """Return the nodes to look at: those that changed themselves or whose slot did, or all."""
    if t.changed is None:
        return t.after.nodes
    ids, slots = t.changed.nodes, t.changed.slots
    if not ids and t.after.nodes is t.before.nodes and not _tree_owns(t.after, slots):
        return ()
    return tuple([node for node in t.after.nodes if node.id in ids or node.state in slots])


def _tree_owns(snapshot: Snapshot, slots: Iterable[int]) -> bool:
    """Whether any of these slots is in the tree: far fewer to ask than there are nodes."""
    size = len(snapshot.slots)
    return any(owner.kind == "tree" for i in slots if 0 <= i < size for owner in snapshot.slots[i].owners)


@_asked_once
def requests_of(t: Transition) -> tuple[RequestView, ...]:
    """Return the requests to look at: those that changed themselves or whose slot did, or all."""
    if t.changed is None:
        return t.after.requests
    ids, slots = t.changed.requests, t.changed.slots
    return tuple([r for r in t.after.requests if r.id in ids or not slots.isdisjoint(r.slots)])


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
