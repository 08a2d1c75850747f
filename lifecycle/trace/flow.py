"""Which step an action schedules, executes and commits, and which requests it ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from replaylife.lifecycle.actions import (
    Abort,
    Commit,
    Draft,
    Execute,
    Finish,
    FinishCopy,
    Forward,
    Prefill,
    Retract,
    Schedule,
    Verify,
)
from replaylife.lifecycle.events import StepScheduled
from replaylife.lifecycle.snapshot import Snapshot, StepView, Transition


class Flow(NamedTuple):
    """The steps that an action moves on; ``None`` where it moves none to that stage."""

    scheduled: StepView | None = None
    executed: StepView | None = None
    committed: StepView | None = None

    @property
    def moved(self) -> StepView | None:
        """The step that the action is about."""
        return self.scheduled or self.executed or self.committed


def flow_of(t: Transition) -> Flow:
    """Return the steps that ``t`` moves on. A step that runs whole shows no slots for its checkpoints."""
    match t.action:
        case Forward() | Prefill() | Verify():
            step = _decided(t)
            return Flow(step, step, step)
        case Draft():
            step = _decided(t)
            return Flow(step, step)
        case Schedule():
            return Flow(scheduled=_decided(t))
        case Execute():
            waiting = (step for step in t.before.in_flight if step.executed_at is None)
            return Flow(executed=next(waiting, None))
        case Commit():
            return Flow(committed=next(iter(t.before.in_flight), None))
        case _:
            return Flow()


def _decided(t: Transition) -> StepView | None:
    """The step that a StepScheduled event tells of, with the slots that the snapshot after shows for it."""
    told = next((event for event in t.events if isinstance(event, StepScheduled)), None)
    if told is None:
        return None
    shown = next((step for step in t.after.in_flight if step.number == told.number), None)
    return StepView(told.number, told.rows, () if shown is None else shown.copies, None)


def has_row(steps: Iterable[StepView], request: str) -> bool:
    """Whether any of the steps has a row of the request."""
    return any(name == request for step in steps for name, _, _ in step.rows)


def ending(t: Transition) -> tuple[str, ...]:
    """Return the requests that are gone after ``t``: asked to end, and with no step in flight any more."""
    match t.action:
        case Finish(name) | Retract(name) | Abort(name):
            return () if has_row(t.before.in_flight, name) else (name,)
        case FinishCopy(of):
            return (of.removeprefix("request "),) if of.startswith("request ") else ()
        case Commit():
            closing = {view.id for view in t.before.requests if view.phase == "closing"}
            rows = [name for step in t.before.in_flight[:1] for name, _, _ in step.rows]
            left = t.before.in_flight[1:]
            return tuple(name for name in rows if name in closing and not has_row(left, name))
        case _:
            return ()


def reserved_by(step: StepView, snapshot: Snapshot) -> set[int]:
    """Return the slots that a step in flight holds itself: not those of its rows' requests."""
    rows = {name for name, _, _ in step.rows}
    tracked = {slot for view in snapshot.requests if view.id in rows for slot in view.track_slots}
    return set(step.copies) - tracked
