"""Which of the situations that matter a transition is: what a random run must have been through to count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from replaylife.lifecycle.actions import Admit, Finish, Forward
from replaylife.lifecycle.events import (
    AdmissionRejected,
    Evicted,
    Matched,
    Published,
    PublishSkipped,
    Released,
    StateFolded,
)
from replaylife.lifecycle.snapshot import Transition

SITUATIONS: dict[str, str] = {
    "fold-in-mid-ring": "a fold of fewer records than the ring has room for",
    "forced-fold": "a track point reached with the ring not full",
    "full-ring-fold": "a fold of a full ring",
    "cow-under-pressure": "an admission that evicts and takes a state to copy",
    "hit": "an admission that takes a cached state",
    "tombstone-hit-again": "a node without a state takes one",
    "retract-with-a-pending-ring": "a request retracted with records in its ring",
    "leave-before-the-copy": "a request retracted or aborted before its copy-on-write has run",
    "donation-onto-a-state": "a finished request's key has a state already",
    "checkpoint-onto-a-state": "a running request's key has a state already",
    "rejected-admission": "an admission rolled back for want of a slot or of tokens",
    "split": "a prompt diverges inside an edge",
    "multi-row-forward": "a forward of two rows or more",
    "forward-evicts": "a forward that makes room first",
}


def situations_of(t: Transition) -> set[str]:
    """Return the names of the situations that a transition is."""
    return {*_of_forward(t), *_of_folds(t), *_of_admission(t), *_of_leaving(t), *_of_tree(t)}


def _of_forward(t: Transition) -> Iterator[str]:
    if isinstance(t.action, Forward):
        if len(t.action.rows) > 1:
            yield "multi-row-forward"
        if any(isinstance(event, Evicted) for event in t.events):
            yield "forward-evicts"


def _of_folds(t: Transition) -> Iterator[str]:
    for event in t.events:
        if not isinstance(event, StateFolded):
            continue
        full = event.records == t.after.ring_length
        yield "full-ring-fold" if full else "fold-in-mid-ring"
        if isinstance(t.action, Forward) and not full:
            yield "forced-fold"


def _of_admission(t: Transition) -> Iterator[str]:
    if not isinstance(t.action, Admit):
        return
    kinds = {type(event) for event in t.events}
    if AdmissionRejected in kinds:
        yield "rejected-admission"
    if any(isinstance(event, Matched) and event.node is not None for event in t.events):
        yield "hit"
        if Evicted in kinds:
            yield "cow-under-pressure"


def _of_leaving(t: Transition) -> Iterator[str]:
    for event in t.events:
        if not isinstance(event, Released):
            continue
        if event.retracted and event.pending:
            yield "retract-with-a-pending-ring"
        was = t.before.request(event.request)
        if was is not None and was.pending_cow is not None:
            yield "leave-before-the-copy"


def _of_tree(t: Transition) -> Iterator[str]:
    before = {node.id: node for node in t.before.nodes}
    for event in t.events:
        if isinstance(event, Published) and event.node in before and before[event.node].state is None:
            yield "tombstone-hit-again"
        if isinstance(event, PublishSkipped) and event.node is not None:
            finish = isinstance(t.action, Finish)
            yield "donation-onto-a-state" if finish else "checkpoint-onto-a-state"
    if t.changed is not None and not t.changed.nodes:
        return
    if any(node.id in before and node.parent != before[node.id].parent for node in t.after.nodes):
        yield "split"


class Coverage:
    """Counts actions by kind, and situations."""

    def __init__(self) -> None:
        self.actions: Counter[str] = Counter()
        self.situations: Counter[str] = Counter(dict.fromkeys(SITUATIONS, 0))

    def count(self, t: Transition) -> None:
        """Count one transition."""
        self.actions[type(t.action).__name__] += 1
        self.situations.update(situations_of(t))

    @property
    def total(self) -> int:
        """The actions counted."""
        return self.actions.total()
