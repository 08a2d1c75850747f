"""What is claimed of checkpoints outside the pool, and what may leave it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from replaylife.lifecycle.events import CopyFinished, CopyStarted
from replaylife.lifecycle.events_outside import from_to
from replaylife.lifecycle.invariants.base import Invariant
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import PlaceView, Transition, Violation
from replaylife.pool import Fold

MAY_LEAVE = frozenset({"temporal", "conv", "conv_checkpoint", "side"})


class Claim(NamedTuple):
    """``holder`` says that the checkpoint in ``place`` covers the tokens of ``due``."""

    subject: str
    place: PlaceView
    holder: str
    due: Fold


def places_of(t: Transition) -> list[tuple[str, PlaceView]]:
    """Return every place to look at, named as the subject of a violation: all, unless nothing has changed."""
    if not (t.after.host_places or t.after.peer_places):  # most engines
        return []
    before, after, named = t.before, t.after, list[tuple[str, PlaceView]]()
    if t.changed is None or after.host_places is not before.host_places:
        named += [(f"host place {place.index}", place) for place in after.host_places]
    if t.changed is None or after.peer_places is not before.peer_places:
        named += [(f"peer place {place.index}", place) for place in after.peer_places]
    return named


def claims_of(t: Transition) -> Iterator[Claim]:
    """Yield what nodes and waiting requests claim of places; a copy still in flight claims nothing."""
    places = places_of(t)
    if not places:  # most actions: the tree need not be read
        return
    keys = {str(node.id): node.key for node in t.after.nodes}
    waiting = {(view.where, view.id): view.tokens for view in t.after.waiting}
    for subject, place in places:
        for owner in place.owners:
            due = keys.get(owner.id) if owner.kind == "tree" else None
            if owner.kind == "request":
                due = waiting.get(("host" if subject.startswith("host") else "peer", owner.id))
            if due is not None:
                yield Claim(subject, place, "node" * (owner.kind == "tree") or "request", due)


class RingStaysHome(Invariant):
    """Ring tensors are scratch of their slot."""

    id = "ring-stays-home"
    claim = "what leaves a slot for host memory or another pool is its checkpoint: no ring tensor is listed"
    only_after = frozenset({CopyStarted, CopyFinished})

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Only with ReplaySSM on there is a ring."""
        return capabilities.replayssm

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check the tensors that every copy of this action lists."""
        for event in t.events:
            if not isinstance(event, CopyStarted | CopyFinished):
                continue
            ring = [name for name in event.components if name not in MAY_LEAVE]
            if ring:
                listed = ", ".join(ring)
                yield self.broken(
                    event.of,
                    f"{listed} listed",
                    "temporal and conv_checkpoint only",
                    f"Let the {event.kind} of {event.of} go {from_to(event)} (step {t.step}).",
                    f"It lists {listed}: records that count from the sender's cursor and checkpoint.",
                    "Then the receiver, whose ring is empty, is given records of another slot's history.",
                )
