"""What a step may be decided on, what it then writes, and what of it may be claimed once it has committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from replaylife.lifecycle.actions import (
    Checkpoint,
    Commit,
    Draft,
    Execute,
    Forward,
    Prefill,
    Schedule,
    Verify,
)
from replaylife.lifecycle.events import (
    Accepted,
    Allocated,
    CheckpointCopied,
    CopyFinished,
    Decoded,
    Drafted,
    Finished,
    Prefilled,
    Published,
    StepCommitted,
    StepScheduled,
)
from replaylife.lifecycle.snapshot import RequestView, StepView, Transition, Violation
from replaylife.lifecycle.trace.flow import Flow, flow_of
from replaylife.lifecycle.trace.succession import broken, differences

Span = tuple[str, int, int]


def steps(t: Transition) -> Iterator[Violation]:
    """Check the step that the action moves on, the steps in flight, and the three lengths of requests."""
    flow = flow_of(t)
    yield from _reported(t)
    yield from _decided(t, flow)
    yield from _written(t, flow)
    yield from _seen(t, flow)
    yield from _flight(t, flow)
    yield from _lengths(t, flow)
    yield from _published(t, flow)


def _reported(t: Transition) -> Iterator[Violation]:
    """One StepScheduled where a step is decided on, one StepCommitted where one commits, no others."""
    for kind, actions in (
        (StepScheduled, Forward | Prefill | Schedule | Verify | Draft),
        (StepCommitted, Forward | Prefill | Verify | Commit),
    ):
        told = sum(isinstance(event, kind) for event in t.events)
        due = int(isinstance(t.action, actions))
        if told != due:
            yield broken(t, kind.__name__, "events", told, due, "one for each step")


def _decided(t: Transition, flow: Flow) -> Iterator[Violation]:
    """The rows of a step are those of the action, each from where its request was scheduled to."""
    if flow.scheduled is None:
        return
    match t.action:
        case Prefill(name, count):
            counts = [(name, count)]
        case Forward(rows, chunks) | Schedule(rows, chunks):
            counts = [*((name, 1) for name in rows), *chunks]
        case Verify(windows) | Draft(windows):
            counts = [(name, window) for name, window, _ in windows]
        case _:
            return
    reached = {view.id: view.scheduled for view in t.before.requests}
    due = tuple((name, reached.get(name, 0), reached.get(name, 0) + count) for name, count in counts)
    subject = f"step {flow.scheduled.number}"
    if flow.scheduled.rows != due:
        why = "the action asks for"
        yield broken(t, subject, "StepScheduled.rows", _rows(flow.scheduled.rows), _rows(due), why)
    if not isinstance(t.action, Schedule):
        return
    taken = {event.slot for event in t.events if isinstance(event, Allocated)}
    own = {slot for view in t.after.requests if view.id in dict(counts) for slot in view.track_slots}
    for slot in sorted(set(flow.scheduled.copies) - taken - own):
        why = "it was not taken for the step, and is no track slot of its rows"
        yield broken(t, subject, "copies", f"slot {slot}", "none", why)
    for slot in sorted(taken - set(flow.scheduled.copies)):
        yield broken(
            t, subject, "copies", f"without slot {slot}", f"slot {slot}", "it was taken for the step"
        )


def _written(t: Transition, flow: Flow) -> Iterator[Violation]:
    """The tokens that ran are those of the step, and so are the slots that it leaves checkpoints in."""
    if flow.executed is None:
        return
    ran = [_span(event) for event in t.events if isinstance(event, Prefilled | Decoded | Drafted)]
    if sorted(ran) != sorted(flow.executed.rows):
        subject, why = f"step {flow.executed.number}", "it was scheduled with"
        found, expected = _rows(tuple(sorted(ran))), _rows(tuple(sorted(flow.executed.rows)))
        yield broken(t, subject, "rows", found, expected, why)
    if isinstance(t.action, Execute):
        left = [e.dst for e in t.events if isinstance(e, CheckpointCopied) and e.purpose == "publish"]
        if Counter(left) != Counter(flow.executed.copies):
            subject, why = f"step {flow.executed.number}", "the checkpoints it was to leave are in slots"
            found, expected = (f"to slots {_list(slots)}" for slots in (left, flow.executed.copies))
            yield broken(t, subject, "copies", found, expected, why)


def _seen(t: Transition, flow: Flow) -> Iterator[Violation]:
    """What a StepCommitted event says of the step, and of the rows whose requests had ended."""
    told = next((event for event in t.events if isinstance(event, StepCommitted)), None)
    if told is None or flow.committed is None:
        return
    subject = f"step {told.number}"
    if told.number != flow.committed.number:
        why = "the oldest step in flight is"
        yield broken(t, subject, "StepCommitted.number", told.number, flow.committed.number, why)
    if isinstance(t.action, Commit) and flow.committed.executed_at is None:
        yield broken(t, subject, "StepCommitted", "reported", "not yet", "the step has not executed")
    due = _discarded(t, flow.committed)
    if told.discarded != due:
        found, expected, why = _list(told.discarded), _list(due), "rows whose requests are closing"
        yield broken(t, subject, "StepCommitted.discarded", found, expected, why)


def _discarded(t: Transition, step: StepView) -> tuple[str, ...]:
    closing = {view.id for view in t.before.requests if view.phase == "closing"}
    return tuple(name for name, _, _ in step.rows if name in closing)


def _flight(t: Transition, flow: Flow) -> Iterator[Violation]:
    """The steps in flight move only by Schedule, Execute and Commit, oldest first."""
    due = list(t.before.in_flight[1:] if isinstance(t.action, Commit) else t.before.in_flight)
    if isinstance(t.action, Execute):
        due = [replace(step, executed_at=t.step) if step is flow.executed else step for step in due]
    if isinstance(t.action, Schedule) and flow.scheduled is not None:
        number = flow.scheduled.number
        if due and number != due[-1].number + 1:
            why = "the step after the last one is"
            yield broken(t, f"step {number}", "number", number, due[-1].number + 1, why)
        due.append(flow.scheduled)
    if isinstance(t.action, Draft) and flow.scheduled is not None:
        due.append(replace(flow.scheduled, executed_at=t.step))
    shown = {step.number: step for step in t.after.in_flight}
    numbers = [step.number for step in due]
    for number in sorted(shown.keys() - set(numbers)):
        yield broken(t, f"step {number}", "in_flight", "there", "not there", "nothing scheduled it")
    for step in due:
        if step.number not in shown:
            yield broken(t, f"step {step.number}", "in_flight", "gone", "there", "no Commit took it")
            continue
        for name in differences(step, shown[step.number]):
            old, new = getattr(step, name), getattr(shown[step.number], name)
            why = "once scheduled, a step only executes and commits"
            yield broken(t, f"step {step.number}", name, new, old, why)
    order = [step.number for step in t.after.in_flight]
    if sorted(order) == sorted(numbers) and order != numbers:
        yield broken(t, "steps", "order", _list(order), _list(numbers), "oldest first it is")


def _lengths(t: Transition, flow: Flow) -> Iterator[Violation]:
    """Scheduled and committed tokens move as the step says; neither is passed by the one it runs ahead of."""
    scheduled = {view.id: view.scheduled for view in t.before.requests}
    committed = {view.id: view.committed for view in t.before.requests}
    if flow.scheduled is not None:
        scheduled |= {name: end for name, _, end in flow.scheduled.rows}
    if flow.committed is not None:
        gone = _discarded(t, flow.committed)
        committed |= {name: end for name, _, end in flow.committed.rows if name not in gone}
    kept = {e.request: e.position + len(e.tokens) for e in t.events if isinstance(e, Accepted)}
    scheduled, committed = scheduled | kept, committed | kept
    for view in t.after.requests:
        for name, due in (("scheduled", scheduled), ("committed", committed)):
            shown = getattr(view, name)
            if shown != due.get(view.id, shown):
                why = "by the steps scheduled and committed it is"
                yield broken(t, f"request {view.id}", name, shown, due[view.id], why)
        yield from _ordered(t, view)


def _ordered(t: Transition, view: RequestView) -> Iterator[Violation]:
    if not view.committed <= view.executed <= view.scheduled:
        found = f"committed {view.committed}, executed {view.executed}, scheduled {view.scheduled}"
        why = "a token is scheduled, then executed, then committed"
        yield broken(t, f"request {view.id}", "lengths", found, "in ascending order", why)


def _published(t: Transition, flow: Flow) -> Iterator[Violation]:
    """What is published is committed: by the step that commits here, or by earlier ones."""
    ended = {event.request for event in t.events if isinstance(event, Finished)}
    rows = set() if flow.committed is None else {name for name, _, _ in flow.committed.rows}
    for event in t.events:
        if not isinstance(event, Published):
            continue
        subject, field = f"node {event.node}", "Published"
        view = t.after.request(event.request) or t.before.request(event.request)
        if view is not None and event.key_len > view.committed:
            why = "the host has seen no more tokens than"
            yield broken(t, subject, f"{field}.key_len", event.key_len, view.committed, why)
        writing = [step.number for step in t.after.in_flight if event.slot in step.copies]
        if writing:
            why = f"step {writing[0]} is in flight and is to write slot {event.slot}"
            yield broken(t, subject, field, f"slot {event.slot}", "not yet", why)
        match event.purpose:
            case "finish":
                fits = event.request in ended
            case "checkpoint":
                fits = isinstance(t.action, Checkpoint)
            case "load":
                fits = any(isinstance(e, CopyFinished) and e.of == f"node {event.node}" for e in t.events)
            case _:
                fits = event.request in rows
        if not fits:
            why = "no step of it commits here, nor does it finish or checkpoint"
            yield broken(t, subject, f"{field}.purpose", event.purpose, "another", why)


def _span(event: Prefilled | Decoded | Drafted) -> Span:
    if isinstance(event, Prefilled):
        return event.request, event.start, event.end
    if isinstance(event, Drafted):
        return event.request, event.position, event.position + len(event.tokens)
    return event.request, event.position, event.position + 1


def _rows(rows: tuple[Span, ...]) -> str:
    return _list(tuple(f"{name} [{start}, {end})" for name, start, end in rows))


def _list(entries: tuple[object, ...] | list[int]) -> str:
    return ", ".join(map(str, entries)) or "none"
