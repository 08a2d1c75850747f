"""Whether a snapshot can follow from the one before by its action and events. Written by hand, once more.

:data:`RULES` says what each action may report and change; ``succession_slots``, ``succession_tree``,
``succession_requests``, ``succession_steps``, ``succession_holdings`` and ``transcripts`` say what the
reported events explain. Whatever is left over has no cause in the trace.
Nothing here calls the engine, pool or tree: it is the second opinion on a recorded run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from replaylife.lifecycle.actions import (
    Abort,
    AbortCopy,
    Action,
    Admit,
    Cancel,
    Checkpoint,
    Commit,
    Draft,
    EndSession,
    EvictHost,
    EvictKv,
    EvictStates,
    Execute,
    Finish,
    FinishCopy,
    Flush,
    Forward,
    Load,
    Offload,
    Prefill,
    Probe,
    Retract,
    Schedule,
    Transfer,
    Verify,
)
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
from replaylife.lifecycle.snapshot import Transition, Violation
from replaylife.lifecycle.trace.flow import ending, flow_of

FOLLOWS = "step-follows"
CLAIM = "a snapshot follows from the one before by its action and the events reported"


class Rule(NamedTuple):
    """What one action may do.

    ``outcome`` are the events of which it reports exactly one for each request whose turn it is (see
    :func:`_due`), ``others`` those it may report besides. Of a request that it concerns and that stays,
    ``fields`` may change; nothing of any other.
    """

    outcome: tuple[type[Event], ...]
    others: tuple[type[Event], ...] = ()
    fields: frozenset[str] = frozenset()


_PUBLISHING = (StateFolded, Evicted, Allocated, CheckpointCopied, Published, PublishSkipped, Freed)
_COPYING = (CopyStarted, CopyFinished, CopyRefused)
_BACKUP = (CopyFinished, CopyRefused)
_STEP = (StepScheduled, StepCommitted)
_HOLDS = frozenset({"locked", "kv_tokens"})
_SCHEDULED = frozenset({"scheduled", "kv_tokens", "track_slots", "stamps"})
_EXECUTED = frozenset({"executed", "tokens", "phase", "pending_cow", "copies"})
_COMMITTED = frozenset({"committed", "track_slots", "stamps"}) | _HOLDS
_WHOLE = _SCHEDULED | _EXECUTED | _COMMITTED
_PHASE = frozenset({"phase"})
_KEPT = frozenset({"scheduled", "executed", "tokens", "drafts"})

RULES: dict[type[Action], Rule] = {
    Admit: Rule((Matched, AdmissionRejected), (Evicted, Allocated, Freed, PlaceFreed, Published, *_COPYING)),
    Prefill: Rule((Prefilled,), _PUBLISHING + _STEP, _WHOLE),
    Forward: Rule((Decoded, Prefilled), _PUBLISHING + _STEP, _WHOLE),
    Schedule: Rule((), (StepScheduled, Evicted, Allocated, PublishSkipped), _SCHEDULED),
    Verify: Rule((Accepted,), (Drafted, CheckpointFolded, *_PUBLISHING, *_STEP), _WHOLE),
    Draft: Rule(
        (Drafted,),
        (StepScheduled, StateFolded, Evicted),
        frozenset({"scheduled", "executed", "kv_tokens", "tokens", "drafts"}),
    ),
    Execute: Rule((Decoded, Prefilled), (StateFolded, CheckpointCopied), _EXECUTED),
    Commit: Rule(
        (Finished, Released),
        (
            *(StepCommitted, Accepted, CheckpointFolded, StateFolded, *_BACKUP),
            *(Evicted, Allocated, Published, PublishSkipped, Freed),
        ),
        _COMMITTED | _KEPT,
    ),
    Checkpoint: Rule((Published, PublishSkipped), _PUBLISHING, _HOLDS),
    Flush: Rule((), (StateFolded,)),
    Finish: Rule((Finished,), _PUBLISHING, _PHASE),
    Retract: Rule((Released,), (Freed, StateFolded, *_BACKUP), _PHASE),
    Abort: Rule((Released,), (Freed,), _PHASE),
    EvictStates: Rule((), (Evicted,)),
    EvictKv: Rule((), (Evicted,)),
    Probe: Rule((Matched,)),
    Offload: Rule((), (CopyStarted, CopyRefused)),
    Load: Rule((), (Evicted, Allocated, CopyStarted, CopyRefused)),
    Transfer: Rule((), (StateFolded, CopyStarted, CopyRefused), _PHASE),
    FinishCopy: Rule((), (CopyFinished, Published, Freed, Released)),
    AbortCopy: Rule((), (CopyAborted, Freed, PlaceFreed), _PHASE),
    EvictHost: Rule((), (Evicted,)),
    Cancel: Rule((Cancelled,), (PlaceFreed,)),
    EndSession: Rule((), (Evicted, PlaceFreed)),
}
CONSTANT = ("kv_capacity", "ring_length", "track_point", "grid")


def broken(t: Transition, subject: str, field: str, found: object, expected: object, why: str) -> Violation:
    """Return the finding that ``field`` of ``subject`` has no cause."""
    return Violation(
        FOLLOWS,
        subject,
        f"{field} {found}",
        str(expected),
        (
            f"Let step {t.step} be {t.action}, with the events that the trace reports.",
            f"{field} of {subject} is {found} afterwards; {why}: {expected}.",
            f"Contradiction with {FOLLOWS}: {CLAIM}.",
        ),
    )


def differences(before: Any, after: Any) -> list[str]:
    """Return the fields in which two views of the same thing differ."""
    if before is after:
        return []
    return [f.name for f in fields(before) if getattr(before, f.name) != getattr(after, f.name)]


def concerned(t: Transition) -> tuple[str, ...]:
    """Return the requests that an action names, or that are in the step it moves on."""
    match t.action:
        case Forward() | Schedule() | Verify() | Draft() | Execute() | Commit():
            step = flow_of(t).moved
            return () if step is None else tuple(name for name, _, _ in step.rows)
        case Probe() | EvictStates() | EvictKv() | EvictHost() | Offload() | Load():
            return ()
        case FinishCopy(of) | AbortCopy(of):
            return (of.removeprefix("request "),)
        case _:
            return (t.action.request,)


def _due(t: Transition) -> Sequence[str | None]:
    """The requests for each of which an action has one outcome: rows of a step it runs, those it ends."""
    match t.action:
        case Forward(rows, chunks):
            return sorted((*rows, *(name for name, _ in chunks)))
        case Verify(windows) | Draft(windows):
            return [name for name, _, _ in windows]
        case Execute():
            return sorted(concerned(t))
        case Commit() | Finish() | Retract() | Abort():
            return list(ending(t))
        case Probe():
            return [None]
        case _:
            return list(concerned(t))


def reports(t: Transition) -> Iterator[Violation]:
    """Check which events the action reports, and that what never changes has not."""
    rule = RULES[type(t.action)]
    for event in t.events:
        if not isinstance(event, (*rule.outcome, *rule.others)):
            kind = type(event).__name__
            yield broken(t, kind, "event", "reported", "not reported", "this action cannot bring that about")
    if rule.outcome:
        told = [event.request for event in t.events if isinstance(event, rule.outcome)]  # type: ignore[union-attr]  # every outcome names its request
        if isinstance(t.action, Forward | Execute):
            told.sort(key=str)  # chunks run before the decode rows
        due = _due(t)
        if told != due:
            kinds = " or ".join(kind.__name__ for kind in rule.outcome)
            yield broken(t, kinds, "requests", _list(told), _list(due), "one such event for each request")
    for name in CONSTANT:
        old, new = getattr(t.before, name), getattr(t.after, name)
        if old != new:
            yield broken(t, "engine", name, new, old, "it never changes")


def _list(names: Iterable[str | None]) -> str:
    return ", ".join("nobody" if name is None else name for name in names) or "none"
