"""Whether a snapshot hangs together: without that, no claim about it can be judged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from replaylife.lifecycle.events import CopyAborted, CopyFinished, CopyStarted, Event
from replaylife.lifecycle.events_outside import copy_ends
from replaylife.lifecycle.snapshot import CopyView, Measurement, Snapshot

SLOT_FIELDS = ("slot", "src", "dst", "slots")  # fields of events that name slots


def flaws(snapshot: Snapshot) -> Iterator[str]:
    """Say which names in a snapshot stand for nothing, or for two things at once."""
    total = len(snapshot.slots)
    if snapshot.track_point < 1:
        yield f"track_point is {snapshot.track_point}, need at least 1"
    for place, slot in enumerate(snapshot.slots):
        if slot.index != place:
            yield f"slot {slot.index} stands at place {place} of the slots"
    yield from _nodes(snapshot, total)
    yield from _requests(snapshot, total)
    yield from _steps(snapshot, total)
    yield from _outside(snapshot)
    yield from _measurements(snapshot.measurements)


def _nodes(snapshot: Snapshot, total: int) -> Iterator[str]:
    seen: set[int] = set()
    for node in snapshot.nodes:
        if node.id in seen:
            yield f"node {node.id} is there twice"
        if node.parent is not None and node.parent not in seen:
            yield f"node {node.id} has parent {node.parent}, which does not come before it"
        if node.state is not None and not 0 <= node.state < total:
            yield f"node {node.id} has slot {node.state} as its state; the slots are 0..{total - 1}"
        seen.add(node.id)


def _requests(snapshot: Snapshot, total: int) -> Iterator[str]:
    seen: set[str] = set()
    for request in snapshot.requests:
        if request.id in seen:
            yield f"request {request.id} is there twice"
        stamped = (slot for slot, _ in request.stamps)
        for slot in (request.slot, *(request.pending_cow or ()), *request.track_slots, *stamped):
            if slot is not None and not 0 <= slot < total:
                yield f"request {request.id} names slot {slot}; the slots are 0..{total - 1}"
        seen.add(request.id)


def _steps(snapshot: Snapshot, total: int) -> Iterator[str]:
    if snapshot.grid is not None and snapshot.grid < 1:
        yield f"grid is {snapshot.grid}, need at least 1"
    seen: set[int] = set()
    for step in snapshot.in_flight:
        if step.number in seen:
            yield f"step {step.number} is in flight twice"
        for slot in step.copies:
            if not 0 <= slot < total:
                yield f"step {step.number} names slot {slot}; the slots are 0..{total - 1}"
        seen.add(step.number)


def _outside(snapshot: Snapshot) -> Iterator[str]:
    """Places stand in order; copies and waiting requests name slots and places that exist."""
    for where in ("host", "peer"):
        for position, place in enumerate(getattr(snapshot, f"{where}_places")):
            if place.index != position:
                yield f"{where} place {place.index} stands at place {position}"
    for copy in snapshot.copies:
        yield from _ends(copy, f"the {copy.kind} of {copy.of}", snapshot)
        if copy.locked is not None and snapshot.node(copy.locked) is None:
            yield f"the {copy.kind} of {copy.of} pins node {copy.locked}, which does not exist"
    if len({copy.of for copy in snapshot.copies}) != len(snapshot.copies):
        yield "two copies of one thing are in flight"
    for view in snapshot.waiting:
        if not 0 <= view.place < len(getattr(snapshot, f"{view.where}_places")):
            yield f"request {view.id} waits in {view.where} place {view.place}, which does not exist"


def _ends(
    copy: CopyView | CopyStarted | CopyFinished | CopyAborted, name: str, snapshot: Snapshot
) -> Iterator[str]:
    """Say where a copy names a slot or a place that does not exist."""
    slot, (where, place) = copy_ends(copy)
    if not 0 <= slot < len(snapshot.slots):
        yield f"{name} names slot {slot}, which does not exist; the slots are 0..{len(snapshot.slots) - 1}"
    places = len(getattr(snapshot, f"{where}_places"))
    if not 0 <= place < places:
        yield f"{name} names {where} place {place}, which does not exist; there are {places}"


def _measurements(measurements: Iterable[Measurement]) -> Iterator[str]:
    for measured in measurements:
        least = 0.0 if measured.kind in ("witness", "untouched") else math.ulp(0.0)  # exact kinds
        if not least <= measured.tolerance < math.inf:
            yield f"{measured.kind} of {measured.subject} has a tolerance of {measured.tolerance}"


def flaws_of_events(events: Iterable[Event], snapshot: Snapshot) -> Iterator[str]:
    """Say which events name slots that the pool does not have."""
    total = len(snapshot.slots)
    for event in events:
        if isinstance(event, CopyStarted | CopyFinished | CopyAborted):
            yield from _ends(event, type(event).__name__, snapshot)
            continue
        for name in SLOT_FIELDS:
            named = getattr(event, name, ())
            for slot in (named,) if isinstance(named, int) else named or ():
                if not 0 <= slot < total:
                    kind = type(event).__name__
                    yield f"{kind} names slot {slot}, which does not exist; the slots are 0..{total - 1}"
