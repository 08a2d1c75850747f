"""What action and events of a step explain about requests: who comes, who goes, what changes of whom."""

from __future__ import annotations

from collections.abc import Iterator

from replaylife.lifecycle.actions import Abort, AbortCopy, Admit, Finish, Prefill, Retract, Transfer
from replaylife.lifecycle.events import (
    Accepted,
    AdmissionRejected,
    Allocated,
    CheckpointCopied,
    CopyStarted,
    Decoded,
    Drafted,
    Prefilled,
)
from replaylife.lifecycle.snapshot import RequestView, Transition, Violation
from replaylife.lifecycle.trace.flow import ending
from replaylife.lifecycle.trace.succession import RULES, broken, concerned, differences
from replaylife.pool import Fold


def requests(t: Transition) -> Iterator[Violation]:
    """Check which requests come, go and change."""
    before = {request.id: request for request in t.before.requests}
    after = {request.id: request for request in t.after.requests}
    moved = set(concerned(t))
    expected = (before.keys() | _arriving(t)) - set(ending(t))
    for name in sorted(after.keys() - expected):
        yield broken(t, f"request {name}", "request", "there", "not there", "after this action it is")
    for name in sorted(expected - after.keys()):
        yield broken(t, f"request {name}", "request", "gone", "there", "after this action it is")
    for name, was in before.items():
        request = after.get(name)
        if request is None or request is was:
            continue
        allowed = RULES[type(t.action)].fields if name in moved else frozenset()
        for changed in differences(was, request):
            if changed not in allowed and not (changed == "slot" and _takes_its_slot(t, was, request)):
                old, new = getattr(was, changed), getattr(request, changed)
                why = "this action does not touch it"
                yield broken(t, f"request {name}", changed, _brief(new), _brief(old), why)
    yield from _phases(t, before, after)
    yield from _progress(t, before, after)


def _phases(
    t: Transition, before: dict[str, RequestView], after: dict[str, RequestView]
) -> Iterator[Violation]:
    """A request whose end was asked for is closing until it is gone; the others prefill, then decode."""
    asked = {t.action.request} if isinstance(t.action, Finish | Retract | Abort | Transfer) else set()
    if isinstance(t.action, Transfer) and not any(isinstance(event, CopyStarted) for event in t.events):
        asked = set()  # refused for want of a place
    goes_on = t.action.of.removeprefix("request ") if isinstance(t.action, AbortCopy) else None
    for name, request in after.items():
        phase = "prefill" if request.executed < request.prompt_len else "decode"
        if name in asked or (name != goes_on and name in before and before[name].phase == "closing"):
            phase = "closing"
        if request.phase != phase:
            why = "by its end asked for or not, and its executed tokens, it is"
            yield broken(t, f"request {name}", "phase", request.phase, phase, why)


def _arriving(t: Transition) -> set[str]:
    rejected = any(isinstance(event, AdmissionRejected) for event in t.events)
    return {t.action.request} if isinstance(t.action, Admit) and not rejected else set()


def _takes_its_slot(t: Transition, was: RequestView, request: RequestView) -> bool:
    """Whether a request without a slot takes a free one: some engines wait until its first chunk."""
    return was.slot is None and any(
        isinstance(event, Allocated) and (event.slot, event.holder) == (request.slot, request.id)
        for event in t.events
    )


def _brief(value: object) -> str:
    return f"cover {value.length}" if isinstance(value, Fold) else str(value)


def _progress(
    t: Transition, before: dict[str, RequestView], after: dict[str, RequestView]
) -> Iterator[Violation]:
    """Executed tokens move as Prefilled, Decoded, Drafted and Accepted say, from where they were."""
    reached = {name: request.executed for name, request in before.items()}
    for event in t.events:
        if not isinstance(event, Prefilled | Decoded | Drafted | Accepted):
            continue
        start = event.start if isinstance(event, Prefilled) else event.position
        match event:
            case Prefilled():
                end = event.end
            case Decoded():
                end = start + 1
            case _:
                end = start + len(event.tokens)
        kind, name = type(event).__name__, event.request
        stood = start + event.window if isinstance(event, Accepted) else start
        if stood != reached.get(name):
            yield broken(t, f"request {name}", kind, f"from {start}", reached.get(name), "it stood at")
        request = after.get(name)
        if request is not None and request.slot != event.slot:
            yield broken(t, f"request {name}", f"{kind}.slot", event.slot, request.slot, "its slot is")
        reached[name] = end
    for name, request in after.items():
        if name in before and request.executed != reached[name]:
            why = "as Prefilled, Decoded, Drafted and Accepted events say"
            yield broken(t, f"request {name}", "executed", request.executed, reached[name], why)
    for event in t.events:
        if isinstance(event, Prefilled) and isinstance(t.action, Prefill):
            count = event.end - event.start
            if count != t.action.count:
                why = "the action asks for"
                yield broken(t, f"request {event.request}", "Prefilled", count, t.action.count, why)
    yield from _copies(t, before, after)


def _copies(
    t: Transition, before: dict[str, RequestView], after: dict[str, RequestView]
) -> Iterator[Violation]:
    for name, request in after.items():
        was = before.get(name)
        run = sum(
            isinstance(event, CheckpointCopied) and event.purpose == "cow" and event.request == name
            for event in t.events
        )
        copies = (0 if was is None else was.copies) + run
        if request.copies != copies:
            why = "counted through CheckpointCopied events"
            yield broken(t, f"request {name}", "copies", request.copies, copies, why)
