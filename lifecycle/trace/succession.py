"""Whether a snapshot can follow from the one before by its action and events. Written by hand, once more.

:data:`RULES` says what each action may report and change; ``succession_slots``, ``succession_tree`` and
``succession_requests`` say what the reported events explain. Whatever is left over has no cause in the trace.
Nothing here calls the engine, pool or tree: it is the second opinion on a recorded run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, NamedTuple

from replaylife.lifecycle.actions import (
    Abort,
    Action,
    Admit,
    Checkpoint,
    EvictKv,
    EvictStates,
    Finish,
    Flush,
    Forward,
    Prefill,
    Probe,
    Retract,
)
from replaylife.lifecycle.events import (
    AdmissionRejected,
    Allocated,
    CheckpointCopied,
    Decoded,
    Event,
    Evicted,
    Finished,
    Freed,
    Matched,
    Prefilled,
    Published,
    PublishSkipped,
    Released,
    StateFolded,
)
from replaylife.lifecycle.snapshot import Transition, Violation

FOLLOWS = "step-follows"
CLAIM = "a snapshot follows from the one before by its action and the events reported"


class Rule(NamedTuple):
    """What one action may do.

    ``outcome`` are the events of which it reports exactly one per request it names, ``others`` those it may
    report besides. Of a request that it names and that stays, ``fields`` may change; nothing of any other.
    """

    outcome: tuple[type[Event], ...]
    others: tuple[type[Event], ...] = ()
    fields: frozenset[str] = frozenset()


_PUBLISHING = (StateFolded, Evicted, Allocated, CheckpointCopied, Published, PublishSkipped, Freed)
_LENGTHS = frozenset({"scheduled", "executed", "committed", "tokens"})
_HOLDS = frozenset({"locked", "kv_tokens"})

RULES: dict[type[Action], Rule] = {
    Admit: Rule((Matched, AdmissionRejected), (Evicted, Allocated, Freed)),
    Prefill: Rule((Prefilled,), _PUBLISHING, _LENGTHS | _HOLDS | {"phase", "pending_cow", "copies"}),
    Forward: Rule((Decoded,), _PUBLISHING, _LENGTHS | _HOLDS),
    Checkpoint: Rule((Published, PublishSkipped), _PUBLISHING, _HOLDS),
    Flush: Rule((), (StateFolded,)),
    Finish: Rule((Finished,), _PUBLISHING),
    Retract: Rule((Released,), (Freed,)),
    Abort: Rule((Released,), (Freed,)),
    EvictStates: Rule((), (Evicted,)),
    EvictKv: Rule((), (Evicted,)),
    Probe: Rule((Matched,)),
}
CONSTANT = ("kv_capacity", "ring_length", "track_point")


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


def named(action: Action) -> tuple[str | None, ...]:
    """Return the requests that an action names; ``None`` for the nobody of a probe."""
    match action:
        case Forward(rows):
            return rows
        case Probe():
            return (None,)
        case EvictStates() | EvictKv():
            return ()
        case _:
            return (action.request,)


def reports(t: Transition) -> Iterator[Violation]:
    """Check which events the action reports, and that what never changes has not."""
    rule = RULES[type(t.action)]
    for event in t.events:
        if not isinstance(event, (*rule.outcome, *rule.others)):
            kind = type(event).__name__
            yield broken(t, kind, "event", "reported", "not reported", "this action cannot bring that about")
    if rule.outcome:
        told = [event.request for event in t.events if isinstance(event, rule.outcome)]  # type: ignore[union-attr]  # every outcome names its request
        if tuple(told) != named(t.action):
            kinds = " or ".join(kind.__name__ for kind in rule.outcome)
            yield broken(
                t, kinds, "requests", _list(told), _list(named(t.action)), "one such event for each request"
            )
    for name in CONSTANT:
        old, new = getattr(t.before, name), getattr(t.after, name)
        if old != new:
            yield broken(t, "engine", name, new, old, "it never changes")


def _list(names: Iterable[str | None]) -> str:
    return ", ".join("nobody" if name is None else name for name in names) or "none"
