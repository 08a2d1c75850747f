"""Events in words: what changed in a step, one sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass

from replaylife.lifecycle.events import (
    Accepted,
    AdmissionRejected,
    Allocated,
    Cancelled,
    CheckpointCopied,
    CheckpointFolded,
    CopyAborted,
    CopyFinished,
    CopyRefused,
    CopyStarted,
    Decoded,
    Drafted,
    Event,
    Evicted,
    Finished,
    Freed,
    Matched,
    PlaceFreed,
    Prefilled,
    Published,
    PublishSkipped,
    Released,
    StateFolded,
    StepCommitted,
    StepScheduled,
)
from replaylife.view.look import Signs, count, spans
from replaylife.view.places import way_of

PURPOSES = {
    "chunk": "the end of a prefill chunk",
    "track": "a track point",
    "finish": "donated at finish",
    "branch": "where its prompt parts from a cached one",
    "block": "a full block",
    "checkpoint": "on request",
    "load": "back from host memory",
}


def sentences(events: Iterable[Event], signs: Signs) -> Iterator[str]:
    """Yield what happened, in order. A slot taken only to be copied into is told by the copy."""
    events = tuple(events)
    filled = {event.dst for event in events if isinstance(event, CheckpointCopied)}
    for event in events:
        if isinstance(event, Allocated) and event.slot in filled:
            continue
        sentence = _sentence(event, signs)
        if sentence:
            yield sentence


def _sentence(event: Event, signs: Signs) -> str:
    match event:
        case Matched():
            return _matched(event)
        case AdmissionRejected():
            return f"rejected and rolled back: {event.reason}"
        case Allocated():
            return f"slot {event.slot} taken for {event.holder}"
        case Freed():
            return f"slot {event.slot} freed: {event.reason}"
        case CheckpointCopied():
            return _copied(event, signs)
        case StateFolded():
            return _folded(event)
        case Prefilled():
            return _prefilled(event)
        case Decoded():
            return f"{event.position + 1} tokens: a track point" if event.tracked else ""
        case Drafted():
            return f"ran a window of {count(len(event.tokens), 'token')} for {event.request}"
        case Accepted():
            return _accepted(event)
        case CheckpointFolded():
            records = count(event.records, "record")
            return (
                f"folded {records} of slot {event.src} into slot {event.dst}, which covers {event.length}: "
                "a track point inside the window"
            )
        case Published():
            why = PURPOSES.get(event.purpose, event.purpose)
            return f"published node {event.node}: key {event.key_len}, slot {event.slot} ({why})"
        case PublishSkipped():
            return f"nothing published for key {event.key_len}: {event.reason}"
        case Evicted():
            return _evicted(event)
        case Released():
            return _released(event)
        case StepScheduled():
            return ""
        case StepCommitted():
            ended = ", ".join(event.discarded)
            return (
                f"discarded what step {event.number} computed for {ended}, which had ended" if ended else ""
            )
        case Finished():
            return _finished(event)
        case _:
            return _outside(event, signs)


def _outside(event: Event, signs: Signs) -> str:
    """What went to places outside the pool and came back."""
    match event:
        case CopyStarted():
            return f"{event.kind} of {event.of} begun, {way_of(event, signs)}: {', '.join(event.components)}"
        case CopyFinished():
            return _moved(event, signs)
        case CopyAborted():
            return f"{event.kind} of {event.of} failed; nothing is claimed of it"
        case CopyRefused():
            return f"no {event.kind} of {event.of}: {event.reason}"
        case PlaceFreed():
            return f"{event.place} place {event.index} freed: {event.reason}"
        case Cancelled():
            return f"{event.request} leaves the waiting queue; nothing of it stays"
        case _:
            return _other(event)


def _moved(event: CopyFinished, signs: Signs) -> str:
    lost = f", {count(event.pending, 'record')} still pending" if event.pending else ""
    way = way_of(event, signs)
    return f"{event.kind} of {event.of}: {way} ({count(event.length, 'token')}{lost})"


def _matched(event: Matched) -> str:
    if event.request is None:
        return f"a look only: state for {event.state_len} tokens, key-value for {event.kv_len}"
    if not event.kv_len:
        return "nothing of the prompt is cached"
    if event.node is None:
        return f"key-value cached for {event.kv_len} tokens, but no state: prefill starts at token 1"
    beyond = f" (key-value reaches {event.kv_len})" if event.kv_len != event.state_len else ""
    return f"cached: the first {event.state_len} tokens, by the state of node {event.node}{beyond}"


def _copied(event: CheckpointCopied, signs: Signs) -> str:
    lost = f", {count(event.pending, 'record')} still pending" if event.pending else ""
    purpose = {"cow": "COW, ", "publish": ""}.get(event.purpose, f"{event.purpose}, ")
    return (
        f"copied slot {event.src} {signs.arrow} {event.dst} ({purpose}{count(event.length, 'token')}{lost})"
    )


def _folded(event: StateFolded) -> str:
    why = "ring not yet full" if event.forced else "ring full"
    records = count(event.records, "record")
    return f"folded {records} of slot {event.slot}: temporal now covers {event.length} ({why})"


def _accepted(event: Accepted) -> str:
    rejected = event.window - len(event.tokens)
    lead = f"kept {count(len(event.tokens), 'token')} of the window for {event.request}"
    return f"{lead}, rejected {rejected}" if rejected else lead


def _prefilled(event: Prefilled) -> str:
    tokens = (
        f"token {event.end}" if event.end - event.start == 1 else f"tokens {event.start + 1}..{event.end}"
    )
    sampled = "" if event.sampled is None else f"; first reply token: {event.sampled}"
    return f"{tokens} absorbed in slot {event.slot}{sampled}"


def _evicted(event: Evicted) -> str:
    parts = [f"slot {spans(event.slots)} freed"] if event.slots else []
    if event.kv_tokens:
        parts.append(f"{event.kv_tokens} key-value tokens freed")
    if event.tombstoned:
        parts.append(f"node {spans(event.tombstoned)} left without a state (tombstone)")
    if event.removed:
        parts.append(f"node {spans(event.removed)} removed")
    if event.hosts:
        parts.append(f"host place {spans(event.hosts)} freed")
    return f"evicted: {', '.join(parts)}"


def _released(event: Released) -> str:
    lost = f", {count(event.pending, 'record')} still in the ring" if event.pending else ""
    return f"gave back all it held{lost}; " + ("it may come back" if event.retracted else "nothing is cached")


def _finished(event: Finished) -> str:
    if event.dropped:
        return f"dropped the last {event.dropped} of {event.committed} committed tokens from the key"
    return f"all {event.committed} committed tokens are in the key"


def _other(event: object) -> str:
    """An event that this version has no words for, by its fields."""
    name = type(event).__name__
    if not is_dataclass(event):
        return name
    return f"{name}: " + ", ".join(f"{field.name} {getattr(event, field.name)}" for field in fields(event))
