"""One event in one clause, with the numbers of the slot it concerns; which slots an event concerns."""

from __future__ import annotations

from replaylife.lifecycle.events import (
    Allocated,
    CheckpointCopied,
    Decoded,
    Event,
    Evicted,
    Freed,
    Prefilled,
    Published,
    StateFolded,
)
from replaylife.lifecycle.snapshot import SlotView, Transition


def span(start: int, end: int) -> str:
    """Name the tokens of ``[start, end)`` as people count them, from 1."""
    return f"token {end}" if end - start == 1 else f"tokens {start + 1}..{end}"


def covers(slot: SlotView) -> str:
    """``temporal 26, conv 30, ring 4``: where the parts of a slot stand."""
    ring = f", ring {len(slot.ring)}" if slot.ring else ""
    return f"temporal {slot.temporal.length}, conv {slot.conv.length}{ring}"


def touches(event: Event, slots: set[int]) -> bool:
    """Whether an event names one of these slots."""
    named = {getattr(event, name, None) for name in ("slot", "src", "dst")} | set(getattr(event, "slots", ()))
    return not named.isdisjoint(slots)


def tell(event: Event, t: Transition) -> str:
    """Say what an event did."""
    match event:
        case Published():
            slot = t.after.slots[event.slot] if 0 <= event.slot < len(t.after.slots) else None
            stand = "" if slot is None else f": {covers(slot)}"
            verb = "is donated to" if event.purpose == "finish" else "becomes the state of"
            return f"slot {event.slot} {verb} node {event.node} under a key of {event.key_len}{stand}"
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
        case _:
            return type(event).__name__
