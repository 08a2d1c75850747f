"""One event in one clause, with the numbers of the slot it concerns."""

from __future__ import annotations

from replaylife.lifecycle.events import (
    Accepted,
    Allocated,
    CheckpointCopied,
    CheckpointFolded,
    Decoded,
    Drafted,
    Event,
    Evicted,
    Freed,
    Matched,
    Prefilled,
    Published,
    StateFolded,
)
from replaylife.lifecycle.events_outside import (
    Cancelled,
    CopyAborted,
    CopyFinished,
    CopyRefused,
    CopyStarted,
    Place,
    PlaceFreed,
    copy_ends,
    from_to,
)
from replaylife.lifecycle.snapshot import SlotView, Transition


def span(start: int, end: int) -> str:
    """Name the tokens of ``[start, end)`` as people count them, from 1."""
    return f"token {end}" if end - start == 1 else f"tokens {start + 1}..{end}"


def covers(slot: SlotView) -> str:
    """``temporal 26, conv 30, ring 4``: where the parts of a slot stand."""
    ring = f", ring {len(slot.ring)}" if slot.ring else ""
    return f"temporal {slot.temporal.length}, conv {slot.conv.length}{ring}"


def tell(event: Event, t: Transition) -> str:
    """Say what an event did."""
    match event:
        case Published():
            verb = "is donated to" if event.purpose == "finish" else "becomes the state of"
            key = f"under a key of {event.key_len}: {_stand(event.slot, t)}"
            return f"slot {event.slot} {verb} node {event.node} {key}"
        case CheckpointCopied():
            behind = f", {event.pending} records stay behind" if event.pending else ""
            return f"slot {event.src} is copied to slot {event.dst}: {event.length} tokens{behind}"
        case StateFolded():
            return f"{event.records} records of slot {event.slot} are folded: temporal at {event.length}"
        case Prefilled():
            return f"{span(event.start, event.end)} of {event.request} go into slot {event.slot}"
        case Decoded():
            return f"token {event.position + 1} of {event.request} goes into slot {event.slot}"
        case Allocated():
            return f"slot {event.slot} is taken for {event.holder}"
        case Freed():
            return f"slot {event.slot} is freed ({event.reason})"
        case Evicted():
            return f"slots {', '.join(map(str, event.slots))} are evicted"
        case Drafted():
            end = event.position + len(event.tokens)
            return f"{span(event.position, end)} of {event.request} go into slot {event.slot} as a window"
        case Accepted():
            return f"{len(event.tokens)} of {event.window} tokens are kept: {_stand(event.slot, t)}"
        case CheckpointFolded():
            into = f"into slot {event.dst}: {event.length} tokens"
            return f"{event.records} records of slot {event.src} are folded {into}"
        case _:
            return _tell_outside(event)


def _tell_outside(event: Event) -> str:
    match event:
        case CopyStarted() | CopyAborted():
            done = "begins" if isinstance(event, CopyStarted) else "fails"
            return f"the {event.kind} of {event.of} {done}, {from_to(event)}"
        case CopyFinished():
            behind = f", {event.pending} records stay behind" if event.pending else ""
            return f"the {event.kind} of {event.of} arrives, {from_to(event)}: {event.length} tokens{behind}"
        case CopyRefused():
            return f"no {event.kind} of {event.of}: {event.reason}"
        case PlaceFreed():
            return f"{event.place} place {event.index} is freed ({event.reason})"
        case Cancelled():
            return f"{event.request} leaves the waiting queue"
        case _:
            return type(event).__name__


def _stand(slot: int, t: Transition) -> str:
    return covers(t.after.slots[slot]) if 0 <= slot < len(t.after.slots) else f"slot {slot}"


def tell_all(t: Transition, slots: set[int], places: set[Place]) -> list[str]:
    """Say what a step did to these slots, and to these places outside the pool; the same once."""
    told = (tell(event, t) for event in t.events if _touches(event, slots, places))
    return list(dict.fromkeys(told))


def _touches(event: Event, slots: set[int], places: set[Place]) -> bool:
    if isinstance(event, CopyStarted | CopyFinished | CopyAborted):
        slot, place = copy_ends(event)
        return slot in slots or place in places
    if isinstance(event, Matched | Allocated):
        return False
    if isinstance(event, PlaceFreed):
        return (event.place, event.index) in places
    named = {getattr(event, name, None) for name in ("slot", "src", "dst")} | set(getattr(event, "slots", ()))
    return not named.isdisjoint(slots)
