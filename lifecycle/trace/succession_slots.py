"""What the events of a step explain about slots: owners, free list, what was written, how far."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from replaylife.lifecycle.actions import Draft
from replaylife.lifecycle.events import (
    Accepted,
    Allocated,
    CheckpointCopied,
    CheckpointFolded,
    CopyFinished,
    Decoded,
    Drafted,
    Event,
    Evicted,
    Freed,
    Prefilled,
    Published,
    StateFolded,
)
from replaylife.lifecycle.snapshot import Owner, SlotView, Snapshot, Transition, Violation
from replaylife.lifecycle.trace.flow import reserved_by
from replaylife.lifecycle.trace.succession import broken, differences

_CURSOR = frozenset({"ring", "write_pos", "device_write_pos"})
_STATE = frozenset({"temporal", "conv", "conv_checkpoint", "written"})
MAY_WRITE: dict[type[Event], frozenset[str]] = {
    Allocated: _STATE | _CURSOR,  # cleared, the cursor at 0
    CheckpointCopied: _STATE | _CURSOR,  # of the destination; the source stays
    CopyFinished: _STATE | _CURSOR,  # of a slot that a load or a restore fills
    StateFolded: _STATE - {"conv"} | _CURSOR,
    Prefilled: _STATE,
    Decoded: _CURSOR | {"conv"},  # with ReplaySSM off: _STATE
    Drafted: _CURSOR | {"conv"},
    Accepted: _CURSOR | {"conv"},
    CheckpointFolded: _STATE | _CURSOR,  # of the destination; the source stays
    Published: _CURSOR | {"conv"},  # a donation leaves the checkpoint alone
    Freed: _CURSOR | {"conv"},  # a donation that the tree did not take
}
EMPTIES = (Allocated, CheckpointCopied, CheckpointFolded, CopyFinished, StateFolded, Published, Freed)


def slots(t: Transition) -> Iterator[Violation]:
    """Check owners, the free list, and every slot that changed."""
    yield from _owners(t)
    yield from _free_list(t)
    events = _by_slot(t.events)
    wrong: list[Violation] = []
    lengths = _lengths(t, wrong)
    yield from wrong
    for before, after in zip(t.before.slots, t.after.slots, strict=True):
        if before is not after:
            yield from _fields(t, before, after, events[after.index])
            yield from _ring(t, before, after, events[after.index])
        if after.temporal.length not in lengths[after.index]:
            yield _temporal(t, before, after, lengths[after.index])
    yield from _cursors(t)


def _owners(t: Transition) -> Iterator[Violation]:
    owners = _owners_of(t.after)
    for slot in t.after.slots:
        if Counter(slot.owners) != owners[slot.index]:
            expected = " and ".join(map(str, owners[slot.index].elements())) or "nobody"
            found = " and ".join(map(str, slot.owners)) or "nobody"
            why = "free list, nodes, requests and steps of the same snapshot say"
            yield broken(t, f"slot {slot.index}", "owners", found, expected, why)


def _owners_of(snapshot: Snapshot) -> defaultdict[int, Counter[Owner]]:
    owners: defaultdict[int, Counter[Owner]] = defaultdict(Counter)
    owners[0][Owner("reserved")] += 1
    for slot in snapshot.free_slots:
        owners[slot][Owner("free")] += 1
    for node in snapshot.nodes:
        if node.state is not None:
            owners[node.state][Owner("tree", str(node.id))] += 1
    for request in snapshot.requests:
        if request.slot is not None:
            owners[request.slot][Owner("request", request.id)] += 1
        for slot in request.track_slots:
            owners[slot][Owner("request", request.id)] += 1
    for step in snapshot.in_flight:
        for slot in reserved_by(step, snapshot):
            owners[slot][Owner("step", str(step.number))] += 1
    for copy in snapshot.copies:
        if copy.kind == "load":
            owners[copy.dst][Owner("copy", copy.of)] += 1
    return owners


def _free_list(t: Transition) -> Iterator[Violation]:
    """Follow the free list through the events: a slot is taken from it, or put back, only as they say."""
    free = Counter(t.before.free_slots)
    for event in t.events:
        if isinstance(event, Allocated):
            if free[event.slot] < 1:
                why = "a slot that is handed out was on the free list"
                yield broken(
                    t, f"slot {event.slot}", "Allocated", "while it was not free", "a free slot", why
                )
            free[event.slot] -= 1
        elif isinstance(event, Freed):
            free[event.slot] += 1
        elif isinstance(event, Evicted):
            free.update(event.slots)
    found = Counter(t.after.free_slots)
    for slot in sorted(slot for slot in free.keys() | found.keys() if free[slot] != found[slot]):
        why = "counted through Allocated, Freed and Evicted events"
        yield broken(t, f"slot {slot}", "free_slots", _times(found[slot]), _times(free[slot]), why)


def _times(count: int) -> str:
    return f"has it {count} times"


def _by_slot(events: Iterable[Event]) -> defaultdict[int, list[Event]]:
    """The events that may write each slot."""
    found: defaultdict[int, list[Event]] = defaultdict(list)
    for event in events:
        if isinstance(event, CheckpointCopied | CheckpointFolded):
            found[event.dst].append(event)
        elif isinstance(event, CopyFinished):
            if event.kind in ("load", "restore"):
                found[event.dst].append(event)
        elif isinstance(event, tuple(MAY_WRITE)):
            found[event.slot].append(event)  # type: ignore[union-attr]  # all but the copies have a slot
    return found


def _fields(t: Transition, before: SlotView, after: SlotView, events: list[Event]) -> Iterator[Violation]:
    allowed = {"owners"}.union(*(MAY_WRITE[type(event)] for event in events))
    if t.before.ring_length is None and any(isinstance(event, Decoded) for event in events):
        allowed |= _STATE
    for name in differences(before, after):
        if name not in allowed:
            old, new = getattr(before, name), getattr(after, name)
            yield broken(t, f"slot {after.index}", name, _brief(new), _brief(old), "no event writes it")
    if after.written not in (before.written, t.step):
        why = "it is the step that wrote temporal"
        yield broken(t, f"slot {after.index}", "written", after.written, f"{before.written} or {t.step}", why)


def _brief(value: object) -> str:
    if isinstance(value, tuple) and hasattr(value, "length"):
        return f"covers {value.length} tokens"
    return f"of {len(value)} records" if isinstance(value, tuple) else str(value)


def _ring(t: Transition, before: SlotView, after: SlotView, events: list[Event]) -> Iterator[Violation]:
    """Records are appended by decode steps, one each, and never change while they are pending.

    A verify window appends one per token, and takes the rejected ones off the end again.
    """
    if after.write_pos is not None and after.write_pos != len(after.ring):
        why = "the pending records are those up to write_pos"
        yield broken(t, f"slot {after.index}", "write_pos", after.write_pos, len(after.ring), why)
    if not events or any(isinstance(event, EMPTIES) for event in events):
        return  # with no event at all, any change of the ring has been reported as such
    length = len(before.ring) + sum(map(_appended, events))
    stay = before.ring[: max(0, length)]
    kept = after.ring[: len(stay)]
    if kept != stay:
        why = "pending records stay until they are folded or rejected"
        found, expected = (f"of {len(ring)} records, other ones" for ring in (after.ring, stay))
        yield broken(t, f"slot {after.index}", "ring", found, expected.removesuffix(", other ones"), why)
    elif t.after.ring_length is not None and len(after.ring) != length:
        why = "a decode step appends one record, a verify window those of its kept tokens"
        found, expected = f"of {len(after.ring)} records", f"of {length} records"
        yield broken(t, f"slot {after.index}", "ring", found, expected, why)


def _appended(event: Event) -> int:
    """How many records an event appends; negative where it takes some off the end."""
    match event:
        case Decoded():
            return 1
        case Drafted():
            return len(event.tokens)
        case Accepted():
            return len(event.tokens) - event.window
        case _:
            return 0


def _lengths(t: Transition, wrong: list[Violation]) -> dict[int, set[int]]:
    """The lengths that each temporal can have: copied, folded and absorbed as the events say.

    Appends to ``wrong`` what an event claims about a length against the events before it.
    """
    lengths = {slot.index: {slot.temporal.length} for slot in t.before.slots}
    for place, event in enumerate(t.events):
        match event:
            case Allocated(slot=slot):
                lengths[slot] |= {0}  # cleared, unless a copy is to fill it
            case CheckpointCopied(src=src, dst=dst):
                lengths[dst] = _copied(lengths[src], event, t.events[place:])
                wrong += _claim(t, event, dst, lengths)
            case CheckpointFolded(src=src, dst=dst, records=records):
                lengths[dst] = {length + records for length in lengths[src]}
                wrong += _claim(t, event, dst, lengths)
            case CopyFinished(kind="load" | "restore", dst=dst, length=length):
                lengths[dst] = {length}  # that of the place it comes from: see succession_places
            case StateFolded(slot=slot, records=records):
                lengths[slot] = {length + records for length in lengths[slot]}
                wrong += _claim(t, event, slot, lengths)
            case Prefilled(slot=slot, start=start, end=end):
                lengths[slot] = {length + end - start for length in lengths[slot]}
            case Decoded(slot=slot) if t.before.ring_length is None:
                lengths[slot] = {length + 1 for length in lengths[slot]}
    return lengths


def _copied(source: set[int], copy: CheckpointCopied, following: Iterable[Event]) -> set[int]:
    """The lengths that a copy can have. One that is left inside a chunk is reported before the chunk is."""
    if copy.purpose == "publish":
        for event in following:
            if isinstance(event, Prefilled) and event.slot == copy.src:
                inside = {
                    length + done for length in source for done in range(1, event.end - event.start + 1)
                }
                return {copy.length} if copy.length in inside else inside
    return set(source)


def _claim(
    t: Transition,
    event: StateFolded | CheckpointCopied | CheckpointFolded,
    slot: int,
    lengths: dict[int, set[int]],
) -> Iterator[Violation]:
    if event.length not in lengths[slot]:
        kind, why = type(event).__name__, "temporal of the slot then covers"
        yield broken(t, f"slot {slot}", f"{kind}.length", event.length, _either(lengths[slot]), why)


def _either(lengths: set[int]) -> str:
    few = sorted(lengths)
    return " or ".join(map(str, few)) if len(few) <= 4 else f"one of {few[0]} to {few[-1]}"


def _temporal(t: Transition, before: SlotView, after: SlotView, possible: set[int]) -> Violation:
    why = f"it covered {before.temporal.length}, and with what events copy, fold and absorb"
    found = f"covers {after.temporal.length} tokens"
    return broken(t, f"slot {after.index}", "temporal", found, _either(possible), why)


def _cursors(t: Transition) -> Iterator[Violation]:
    """The cursors that events of a row state are those of the snapshots around the step."""
    for event in t.events:
        if not isinstance(event, Decoded | Drafted | Accepted):
            continue
        sides = {"before": t.before, "after": t.after}
        if isinstance(event, Accepted) or (isinstance(event, Drafted) and not isinstance(t.action, Draft)):
            del sides["before" if isinstance(event, Accepted) else "after"]
        for side, snapshot in sides.items():
            stated, shown = getattr(event, f"cursor_{side}"), snapshot.slots[event.slot].write_pos
            if stated != shown:
                why = f"write_pos {side} the step is"
                kind = f"{type(event).__name__}.cursor_{side}"
                yield broken(t, f"slot {event.slot}", kind, stated, shown, why)
