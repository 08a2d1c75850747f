"""What the events of a step explain about who holds which slot, and which stamps a request carries."""

from __future__ import annotations

from collections.abc import Iterator

from replaylife.lifecycle.actions import Admit
from replaylife.lifecycle.events import Allocated, CopyFinished, Evicted, Freed, Matched, Published
from replaylife.lifecycle.snapshot import RequestView, Transition, Violation
from replaylife.lifecycle.trace.flow import Flow, flow_of, has_row
from replaylife.lifecycle.trace.succession import broken


class _Told:
    """The slots that events of a step take, put back and hand over."""

    def __init__(self, t: Transition) -> None:
        self.taken = [event.slot for event in t.events if isinstance(event, Allocated)]
        self.given = {event.slot for event in t.events if isinstance(event, Published)}
        self.freed = {event.slot for event in t.events if isinstance(event, Freed)}
        self.evicted = {slot for event in t.events if isinstance(event, Evicted) for slot in event.slots}


def holdings(t: Transition) -> Iterator[Violation]:
    """Check every slot that changed hands, and what requests hold."""
    told, flow = _Told(t), flow_of(t)
    yield from _hands(t, told)
    before = {request.id: request for request in t.before.requests}
    for request in t.after.requests:
        was = before.get(request.id)
        if was is None:
            yield from _arrived(t, request, told)
        elif was is not request:
            yield from _track_slots(t, was, request, told)
            yield from _stamps(t, was, request, flow, told)


def _hands(t: Transition, told: _Told) -> Iterator[Violation]:
    """A slot changes hands only by an event that names it."""
    named = {*told.taken, *told.given, *told.freed, *told.evicted}
    for before, after in zip(t.before.slots, t.after.slots, strict=True):
        if before.owners != after.owners and after.index not in named:
            found, expected = (" and ".join(map(str, side.owners)) or "nobody" for side in (after, before))
            why = "no event takes it, gives it or puts it back"
            yield broken(t, f"slot {after.index}", "owned by", found, expected, why)


def _arrived(t: Transition, request: RequestView, told: _Told) -> Iterator[Violation]:
    """A request that comes in stands at the prefix it took, and holds the slots just taken."""
    met = next((event for event in t.events if isinstance(event, Matched)), None)
    if met is None or not isinstance(t.action, Admit):
        return
    back = [event for event in t.events if isinstance(event, CopyFinished)]
    at = next((event.length for event in back if event.kind == "restore"), met.state_len)
    loaded = {event.dst for event in back if event.kind == "load"}
    taken = [slot for slot in told.taken if slot not in loaded]
    due = {"cached": at, "scheduled": at, "executed": at, "committed": at, "stamps": ()}
    due["prompt_len"] = len(t.action.tokens)
    for name, value in due.items():
        if getattr(request, name) != value:
            why = "by the admission and what it matched it is"
            yield broken(t, f"request {request.id}", name, getattr(request, name), value, why)
    held = (*(() if request.slot is None else (request.slot,)), *request.track_slots)
    if sorted(held) != sorted(taken):
        found, expected = (f"hold {', '.join(map(str, slots)) or 'none'}" for slots in (held, taken))
        why = "Allocated events say"
        yield broken(t, f"request {request.id}", "slots", found, expected, why)


def _track_slots(t: Transition, was: RequestView, request: RequestView, told: _Told) -> Iterator[Violation]:
    """Track slots come from the free list, and go back there or to the tree."""
    subject, old, new = f"request {request.id}", set(was.track_slots), set(request.track_slots)
    if len(new) != len(request.track_slots):
        yield broken(t, subject, "track_slots", request.track_slots, "each once", "it owns each once")
    for slot in sorted(new - old - set(told.taken)):
        yield broken(t, subject, "track_slots", f"with slot {slot}", "without", "it was not taken for it")
    for slot in sorted(old - new - told.freed - told.given):
        why = "it was neither given nor put back"
        yield broken(t, subject, "track_slots", f"without slot {slot}", "with it", why)


def _stamps(
    t: Transition, was: RequestView, request: RequestView, flow: Flow, told: _Told
) -> Iterator[Violation]:
    """A stamp comes when the step that wrote the slot commits, and goes with the slot or the next write."""
    subject, old, new = f"request {request.id}", dict(was.stamps), dict(request.stamps)
    step = flow.committed
    spans = [] if step is None else [(a, b) for name, a, b in step.rows if name == request.id]
    for slot, stamp in new.items():
        if slot not in request.track_slots:
            why = "it is no track slot of the request"
            yield broken(t, subject, "stamps", f"with slot {slot}", "without", why)
        if stamp == old.get(slot):
            continue
        length = f"slot {slot} at {stamp.length}"
        if request.phase == "closing" or not any(start < stamp.length <= end for start, end in spans):
            why = "no row of it that commits here reaches that length"
            yield broken(t, subject, "stamps", length, "no such stamp", why)
        elif step is not None and step.copies and slot not in step.copies:
            why = "the step that commits here has not written it"
            yield broken(t, subject, "stamps", length, "no such stamp", why)
    rewritten = flow.scheduled is not None and has_row([flow.scheduled], request.id)
    for slot in sorted(old.keys() - new.keys() - told.freed):  # one that is put back may be taken again
        if slot in request.track_slots and not rewritten:
            why = "no step is scheduled that writes it"
            yield broken(t, subject, "stamps", f"without slot {slot}", "with it", why)
