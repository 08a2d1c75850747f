"""What an invariant is, and how it picks what to look at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import NodeView, RequestView, SlotView, Transition, Violation
from replaylife.pool import Fold


class Invariant(ABC):
    """A claim that holds in every state, or across every transition, of a correct engine.

    ``id`` is its name, ``claim`` one sentence; ``from_tensors`` marks those judged from measurements. Checks
    read snapshots and events only, so they hold for any engine. They look at the views that the action
    changed; with ``t.changed`` unset they look at all. A claim about events alone names in ``only_after``
    those without which it cannot be broken, and need not be asked; empty: it is always asked.
    """

    id: ClassVar[str]
    claim: ClassVar[str]
    from_tensors: ClassVar[bool] = False
    only_after: ClassVar[frozenset[type]] = frozenset()

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


class _Looked(NamedTuple):
    """What there is to look at in one transition."""

    of: Transition | None
    slots: tuple[SlotView, ...]
    nodes: tuple[NodeView, ...]
    requests: tuple[RequestView, ...]


_looked = _Looked(None, (), (), ())


def _look(t: Transition) -> _Looked:
    """Pick the views that an action changed, or whose slot it did; all where it does not say."""
    global _looked  # all invariants ask the same of one transition
    if _looked.of is not t:
        after, changed = t.after, t.changed
        if changed is None:
            _looked = _Looked(t, after.slots, after.nodes, after.requests)
        else:
            slots, size = changed.slots, len(after.slots)
            _looked = _Looked(
                t,
                tuple([after.slots[index] for index in sorted(slots) if 0 <= index < size]),
                tuple([n for n in after.nodes if n.id in changed.nodes or n.state in slots]),
                tuple(
                    [r for r in after.requests if r.id in changed.requests or not slots.isdisjoint(r.slots)]
                ),
            )
    return _looked


def slots_of(t: Transition) -> tuple[SlotView, ...]:
    """Return the slots to look at: the changed ones, or all."""
    return _look(t).slots


def nodes_of(t: Transition) -> tuple[NodeView, ...]:
    """Return the nodes to look at: those that changed themselves or whose slot did, or all."""
    return _look(t).nodes


def requests_of(t: Transition) -> tuple[RequestView, ...]:
    """Return the requests to look at: those that changed themselves or whose slot did, or all."""
    return _look(t).requests


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
