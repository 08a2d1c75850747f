"""Judges transitions from what they say alone: every invariant, and whether each step follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from replaylife.lifecycle.invariants import INVARIANTS, Checker
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import Snapshot, Transition, Violation
from replaylife.lifecycle.trace.structure import flaws, flaws_of_events
from replaylife.lifecycle.trace.succession import FOLLOWS, broken, reports
from replaylife.lifecycle.trace.succession_holdings import holdings
from replaylife.lifecycle.trace.succession_places import places
from replaylife.lifecycle.trace.succession_requests import requests
from replaylife.lifecycle.trace.succession_slots import slots
from replaylife.lifecycle.trace.succession_steps import steps
from replaylife.lifecycle.trace.succession_tree import tree
from replaylife.lifecycle.trace.transcripts import Transcripts


@dataclass(slots=True)
class Report:
    """What a check came to: how many steps were judged, and (step, violation) of each new violation.

    A violation is new when its invariant has not been broken by its subject before.
    """

    steps: int = 0
    violations: list[tuple[int, Violation]] = field(default_factory=list)

    @property
    def held(self) -> bool:
        """Whether nothing was violated."""
        return not self.violations


class TransitionChecker:
    """Judges one transition after the other; remembers the last snapshot and the requests now running.

    ``capabilities`` say which invariants apply; without them they are read off the first snapshot.
    """

    def __init__(self, capabilities: Capabilities | None = None) -> None:
        self._checker = None if capabilities is None else Checker(capabilities)
        self._transcripts = Transcripts()
        self._last: Snapshot | None = None
        self._step: int | None = None
        self._seen: set[tuple[str, str]] = set()

    @property
    def num_invariants(self) -> int:
        """How many invariants are applied to each step."""
        return 0 if self._checker is None else len(self._checker.invariants)

    def check(self, transition: Transition) -> tuple[Violation, ...]:
        """Return the violations of a transition that are new, all of them.

        Every view is looked at, whatever ``transition.changed`` says.
        """
        found = list(self._all(replace(transition, changed=None)))
        fresh = tuple(violation for violation in found if _key(violation) not in self._seen)
        self._seen |= {_key(violation) for violation in fresh}
        return fresh

    def _all(self, t: Transition) -> Iterator[Violation]:
        if self._checker is None:
            self._checker = Checker(
                Capabilities(t.before.ring_length is not None, numeric=True, witness=True)
            )
        unsound = [*_unsound(t)]
        yield from self._chain(t)
        self._last, self._step = t.after, t.step
        if unsound:
            yield from (broken(t, "snapshot", "structure", flaw, "sound", "it must be") for flaw in unsound)
            return
        yield from self._checker.check(t)
        for rule in (reports, slots, tree, requests, steps, holdings, places, self._transcripts.follow):
            yield from rule(t)

    def _chain(self, t: Transition) -> Iterator[Violation]:
        if self._step is not None and t.step != self._step + 1:
            yield broken(t, "trace", "step", t.step, self._step + 1, "steps are numbered one by one")
        if self._last is not None and t.before is not self._last and t.before != self._last:
            yield broken(
                t, "trace", "before", "another snapshot", "the one after the last step", "it must be"
            )


def _key(violation: Violation) -> tuple[str, str]:
    """What tells violations apart: for those of succession the field too."""
    field_too = f" {violation.found.partition(' ')[0]}" if violation.invariant == FOLLOWS else ""
    return violation.invariant, violation.subject + field_too


def _unsound(t: Transition) -> Iterator[str]:
    yield from flaws(t.before)
    yield from flaws(t.after)
    if len(t.before.slots) != len(t.after.slots):
        yield f"{len(t.after.slots)} slots, {len(t.before.slots)} before"
    yield from flaws_of_events(t.events, t.after)


def from_tensors(violation: Violation) -> bool:
    """Whether a violation was judged from measurements, which a trace only repeats."""
    kind = INVARIANTS.get(violation.invariant)
    return kind is not None and kind.from_tensors


def check(transitions: Iterable[Transition], capabilities: Capabilities | None = None) -> Report:
    """Judge the transitions of any engine: every invariant, and whether each step follows from the last.

    ``transitions`` come in order of their steps, each beginning where the one before ended; they are read one
    at a time. Numeric claims are judged from the recorded measurements only. Nothing is raised for what is
    wrong with a transition: it is a violation of ``step-follows``.

    >>> import replaylife
    >>> from replaylife.lifecycle import actions, events
    >>> from replaylife.lifecycle.snapshot import Owner, SlotView, Snapshot, Transition
    >>> from replaylife.pool import EMPTY
    >>> def slot(index, owner, pending=0):
    ...     return SlotView(index, (owner,), EMPTY, EMPTY, EMPTY, (None,) * pending, pending, pending, 0)
    >>> def engine(*slots):
    ...     sizes = dict(kv_capacity=64, kv_free=64, ring_length=16, track_point=256, grid=None)
    ...     return Snapshot(slots, (), (), free_slots=(1,), lru=(), in_flight=(), **sizes)
    >>> before = engine(slot(0, Owner("reserved")), slot(1, Owner("free")))
    >>> after = engine(slot(0, Owner("reserved")), slot(1, Owner("free"), pending=3))
    >>> met = events.Matched(request=None, kv_len=0, state_len=0, node=None)
    >>> report = replaylife.check([Transition(1, before, actions.Probe((7, 8)), (met,), after)])
    >>> report.held, report.steps
    (False, 1)
    >>> [(step, v.invariant, v.subject, v.found) for step, v in report.violations]  # doctest: +ELLIPSIS
    [(1, 'step-follows', 'slot 1', 'ring of 3 records'), (1, 'step-follows', 'slot 1', 'write_pos 3'), ...]
    """
    checker, report = TransitionChecker(capabilities), Report()
    for transition in transitions:
        report.steps += 1
        report.violations += [(transition.step, violation) for violation in checker.check(transition)]
    return report
