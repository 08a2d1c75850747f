"""What the events of a step explain about places outside the pool, copies in flight and waiting requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from replaylife.lifecycle.events import (
    CopyAborted,
    CopyFinished,
    CopyStarted,
    Evicted,
    PlaceFreed,
)
from replaylife.lifecycle.snapshot import CopyView, Owner, PlaceView, Snapshot, Transition, Violation
from replaylife.lifecycle.trace.succession import broken

_INTO_A_PLACE = ("offload", "transfer", "backup")


def places(t: Transition) -> Iterator[Violation]:
    """Check free lists, owners and contents of places, the copies in flight, and who waits."""
    for where in ("host", "peer"):
        old, new = (getattr(side, f"{where}_places") for side in (t.before, t.after))
        if len(old) != len(new):
            yield broken(t, where, "places", len(new), len(old), "their number never changes")
            continue
        yield from _free_list(t, where)
        for before, after in zip(old, new, strict=True):
            yield from _owned(t, where, before, after)
            yield from _written(t, where, before, after)
    yield from _loaded(t)
    yield from _copies(t)
    yield from _waiting(t)


def _free_list(t: Transition, where: str) -> Iterator[Violation]:
    """A place is taken and put back only as events say."""
    free = Counter(getattr(t.before, f"{where}_free"))
    for event in t.events:
        if (
            isinstance(event, CopyStarted) and event.kind == ("offload" if where == "host" else "transfer")
        ) or (isinstance(event, CopyFinished) and event.kind == "backup" and event.place == where):
            free[event.dst] -= 1
        elif isinstance(event, PlaceFreed) and event.place == where:
            free[event.index] += 1
        elif isinstance(event, Evicted) and where == "host":
            free.update(event.hosts)
    found = Counter(getattr(t.after, f"{where}_free"))
    for place in sorted(place for place in free.keys() | found.keys() if free[place] != found[place]):
        why = "counted through the events that take places and put them back"
        subject = f"{where} place {place}"
        yield broken(t, subject, "free list", f"{found[place]} times", f"{free[place]} times", why)


def _owned(t: Transition, where: str, before: PlaceView, after: PlaceView) -> Iterator[Violation]:
    """Owners are those that free list, waiting requests and copies of the same snapshot say, or a node."""
    subject, due = f"{where} place {after.index}", _owners_of(t.after, where, after.index)
    nodes = [owner for owner in after.owners if owner.kind == "tree"]
    if Counter(owner for owner in after.owners if owner.kind != "tree") != due:
        found, expected = (
            " and ".join(map(str, owners)) or "nobody" for owners in (after.owners, due.elements())
        )
        why = "free list, waiting requests and copies in flight of the same snapshot say"
        yield broken(t, subject, "owners", found, expected, why)
    arrived = {
        (event.of, event.dst)
        for event in t.events
        if isinstance(event, CopyFinished) and event.kind == "offload"
    }
    for owner in nodes:
        claimed = where == "host" and (f"node {owner.id}", after.index) in arrived
        if owner not in before.owners and not claimed:
            yield broken(
                t, subject, "owners", f"with {owner}", "without", "no offload of it has arrived here"
            )
        if t.after.node(int(owner.id) if owner.id.isdecimal() else -1) is None:
            yield broken(t, subject, "owners", f"with {owner}", "without", "there is no such node")
    gone = {place for event in t.events if isinstance(event, Evicted) for place in event.hosts}
    for owner in before.owners:
        if owner.kind == "tree" and owner not in after.owners and after.index not in gone:
            yield broken(t, subject, "owners", f"without {owner}", "with it", "no eviction took the copy")


def _owners_of(snapshot: Snapshot, where: str, place: int) -> Counter[Owner]:
    owners = Counter(Owner("free") for free in getattr(snapshot, f"{where}_free") if free == place)
    owners.update(
        Owner("request", view.id) for view in snapshot.waiting if (view.where, view.place) == (where, place)
    )
    kind = "offload" if where == "host" else "transfer"
    owners.update(Owner("copy", c.of) for c in snapshot.copies if (c.kind, c.dst) == (kind, place))
    return owners


def _written(t: Transition, where: str, before: PlaceView, after: PlaceView) -> Iterator[Violation]:
    """A place is written only by a copy that arrives there, and then covers what the event says."""
    subject = f"{where} place {after.index}"
    into = [
        event
        for event in t.events
        if isinstance(event, CopyFinished)
        and event.kind in _INTO_A_PLACE
        and (event.place, event.dst) == (where, after.index)
    ]
    if not into:
        for name in ("temporal", "conv", "written"):
            if getattr(before, name) != getattr(after, name):
                why = "no copy arrives here"
                yield broken(t, subject, name, "written", "as it was", why)
        return
    if after.temporal.length != into[-1].length:
        why = "the copy that arrives covers"
        yield broken(t, subject, "temporal", f"covers {after.temporal.length}", into[-1].length, why)
    if after.written != t.step:
        yield broken(t, subject, "written", after.written, t.step, "it is the step in which the copy arrives")


def _loaded(t: Transition) -> Iterator[Violation]:
    """What a load or a restore brings to a slot is what the place holds."""
    for event in t.events:
        if not isinstance(event, CopyFinished) or event.kind in _INTO_A_PLACE:
            continue
        held = getattr(t.before, f"{event.place}_places")[event.src].temporal.length
        if event.length != held:
            why = f"{event.place} place {event.src} covers"
            yield broken(t, event.of, "CopyFinished.length", event.length, held, why)


def _copies(t: Transition) -> Iterator[Violation]:
    """Copies in flight begin, arrive and fail only as events say, and do not change in between."""
    due = {copy.of: copy for copy in t.before.copies}
    for event in t.events:
        key = getattr(event, "of", "")
        if isinstance(event, CopyStarted):
            locked = int(key.removeprefix("node ")) if key.removeprefix("node ").isdecimal() else None
            locked = None if event.kind == "transfer" else locked
            due[key] = CopyView(event.kind, key, event.src, event.dst, locked)
        elif isinstance(event, CopyAborted) or (
            isinstance(event, CopyFinished) and event.kind in ("offload", "load", "transfer")
        ):
            was = due.pop(key, None)
            if was is None or (was.kind, was.src, was.dst) != (event.kind, event.src, event.dst):
                name = type(event).__name__
                yield broken(t, key, name, "reported", "not reported", "no such copy was in flight")
    shown = {copy.of: copy for copy in t.after.copies}
    for of in sorted(due.keys() | shown.keys()):
        if due.get(of) != shown.get(of):
            found, expected = ("as now" if side.get(of) else "none" for side in (shown, due))
            yield broken(
                t, of, "copies", found, f"{expected}, by its events", "copies in flight follow events"
            )


def _waiting(t: Transition) -> Iterator[Violation]:
    """A request begins to wait when its checkpoint arrives outside, and stops when the place is put back."""
    before = {view.id: view for view in t.before.waiting}
    after = {view.id: view for view in t.after.waiting}
    arrived = {
        event.of.removeprefix("request "): event
        for event in t.events
        if isinstance(event, CopyFinished) and event.kind in ("backup", "transfer")
    }
    freed = {(event.place, event.index) for event in t.events if isinstance(event, PlaceFreed)}
    for name, view in after.items():
        event = arrived.get(name)
        if event is not None and (view.where, view.place) != (event.place, event.dst):
            found, expected = f"in {view.where} place {view.place}", f"in {event.place} place {event.dst}"
            yield broken(t, f"request {name}", "waiting", found, expected, "its checkpoint arrived there")
        if event is None and before.get(name) != view:
            yield broken(t, f"request {name}", "waiting", "there", "not there", "nothing of it has arrived")
    for name, view in before.items():
        if name not in after and (view.where, view.place) not in freed:
            yield broken(t, f"request {name}", "waiting", "gone", "there", "its place was not put back")
