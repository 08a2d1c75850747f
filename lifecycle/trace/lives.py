"""What is known of each slot, and of each place outside the pool: its last write, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replaylife.lifecycle.events import Allocated, CheckpointCopied, Event, Evicted, Freed
from replaylife.lifecycle.events_outside import CopyFinished, Place, PlaceFreed, copy_ends, inward
from replaylife.lifecycle.snapshot import SlotView, Transition
from replaylife.lifecycle.trace.chain import Link, here
from replaylife.lifecycle.trace.telling import covers, span, tell, tell_all


@dataclass(slots=True)
class Life:
    """Of one slot or place: its last write, the records pending in its ring, the records it lacks."""

    written: Link | None = None
    pending: Link | None = None
    left: Link | None = None

    @property
    def apart(self) -> Link | None:
        """Where what it holds and what its tokens are went apart, if they did."""
        return self.left or self.pending


class Lives:
    """Follows what is written where. The life of a slot that a step frees is known until the next."""

    def __init__(self) -> None:
        self._slots: dict[int, Life] = {}
        self._places: dict[Place, Life] = {}
        self._ended: dict[int, Life] = {}

    def follow(self, t: Transition) -> None:
        """Take note of one step."""
        self._ended = {}
        filled: dict[int, Life | None] = {}
        for event in t.events:
            for slot in given_back(event):
                life = self._slots.pop(slot, Life())
                self._ended[slot] = Life() if isinstance(event, Allocated) else life
            self._hand_on(t, event, filled)
        for was, view in zip(t.before.slots, t.after.slots, strict=False):
            if was is not view:
                self._write_down(t, was, view, filled)

    def of(self, slots: Iterable[int], places: Iterable[Place] = ()) -> list[Life]:
        """Return what is known of these."""
        found = [life for slot in sorted(slots) for life in (self._ended.get(slot), self._slots.get(slot))]
        found += [self._places.get(place) for place in sorted(places)]
        return [life for life in found if life is not None]

    def _hand_on(self, t: Transition, event: Event, filled: dict[int, Life | None]) -> None:
        """Note which slot is filled from where, and what a place gets; ``filled`` is by slot."""
        if isinstance(event, CheckpointCopied):
            filled[event.dst] = self._slots.get(event.src) if event.pending else None
        elif isinstance(event, PlaceFreed):
            self._places.pop((event.place, event.index), None)
        elif isinstance(event, CopyFinished):
            slot, place = copy_ends(event)
            if inward(event.kind):
                filled[slot] = self._places.get(place)
                return
            source = self._slots.get(slot) if event.pending else None
            left = None if source is None else source.pending or source.left
            self._places[place] = Life(written=here(t, tell(event, t)), left=left)

    def _write_down(
        self, t: Transition, was: SlotView, slot: SlotView, filled: dict[int, Life | None]
    ) -> None:
        life = self._slots.setdefault(slot.index, Life())
        if slot.temporal != was.temporal or slot.index in filled:
            life.written, life.left = here(t, _writing(t, slot)), None
        _ring(life, t, was, slot)
        source = filled.get(slot.index)
        if source is not None:
            life.left = source.pending or source.left


def given_back(event: Event) -> set[int]:
    """Return the slots whose contents an event puts an end to."""
    if isinstance(event, Freed | Allocated):
        return {event.slot}
    return set(event.slots) if isinstance(event, Evicted) else set()


def _ring(life: Life, t: Transition, was: SlotView, slot: SlotView) -> None:
    """Book the records that a step added to a ring, folded away, or left behind."""
    if len(slot.ring) > len(was.ring):
        newest = slot.ring[-1]
        first = t.step if life.pending is None else life.pending.first
        end = slot.temporal.length + len(slot.ring) if newest is None else newest.position + 1
        whose = "" if newest is None else f" of {newest.request}"
        tokens = span(end - len(slot.ring), end)
        text = f"{tokens}{whose} in the ring of slot {slot.index}; temporal stays at {slot.temporal.length}"
        life.pending = Link(first, t.step, str(t.action), text)
    elif len(slot.ring) < len(was.ring):
        folded = slot.temporal.length > was.temporal.length
        life.left = None if folded else life.pending
        life.pending = None


def _writing(t: Transition, slot: SlotView) -> str:
    told = "; ".join(tell_all(t, {slot.index}, set()))
    return told or f"slot {slot.index} is written: {covers(slot)}"
