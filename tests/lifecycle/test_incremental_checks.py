"""Looking only at what changed finds exactly what looking at everything finds."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

import pytest

from replaylife.lifecycle.config import CacheConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.invariants import INVARIANTS
from replaylife.lifecycle.snapshot import Snapshot, Violation
from replaylife.lifecycle.wander.walk import Walk

from .from_scratch import snapshot_of
from .wandering import BREAKDOWNS, BREAKS_DOWN, COMBINATIONS, MORE_POLICIES, cache_for, factory, name_of

POLICIES = [*(cache for cache in COMBINATIONS if cache.graph_rows is None), *MORE_POLICIES]
LEDGER_FAULTS = sorted(name for name, fault in FAULTS.items() if fault.ledger)


@pytest.mark.parametrize("policy", POLICIES, ids=name_of)
def test_the_snapshot_is_the_one_built_from_scratch(policy: CacheConfig) -> None:
    walk = Walk(factory(cache=policy))
    for taken in walk.wander(11, 500):
        assert taken.transition.after == snapshot_of(walk.engine), taken.transition.action  # type: ignore[arg-type]


@pytest.mark.parametrize("fault", LEDGER_FAULTS)
def test_the_snapshot_of_a_faulty_engine_is_the_one_built_from_scratch(fault: str) -> None:
    walk, met = Walk(factory(fault, cache=cache_for(fault))), False
    with suppress(*BREAKDOWNS):
        for taken in walk.wander(11, 1_500):
            assert taken.transition.after == snapshot_of(walk.engine), taken.transition.action  # type: ignore[arg-type]
            met = met or bool(taken.violations)
            if met:
                break
    assert met or fault in BREAKS_DOWN, f"{fault} was not met"


ABOUT_EVENTS = {
    "phantom-record-per-window": "cursor-advances-once",
    "flush-mask-off-by-one": "tracked-means-folded",
    "keeps-one-too-many": "kept-as-sampled",
    "transfer-lists-ring": "ring-stays-home",
}


@pytest.mark.parametrize("fault", ABOUT_EVENTS)
def test_a_claim_about_events_has_nothing_to_say_without_them(fault: str) -> None:
    claim = INVARIANTS[ABOUT_EVENTS[fault]]()
    walk = Walk(factory(fault, cache=cache_for(fault)))
    for taken in walk.wander(11, 1_500):
        t = taken.transition
        others = tuple(event for event in t.events if type(event) not in claim.only_after)
        assert list(claim.violations(replace(t, events=others))) == []
        if any(violation.invariant == claim.id for violation in taken.violations):
            break
    else:
        pytest.fail(f"{fault} was not met")


def test_the_claims_about_events_are_these() -> None:
    assert {name for name, kind in INVARIANTS.items() if kind.only_after} == set(ABOUT_EVENTS.values())


@pytest.mark.parametrize("policy", POLICIES, ids=name_of)
def test_views_outside_what_changed_are_the_same_objects(policy: CacheConfig) -> None:
    walk, kept = Walk(factory(cache=policy)), 0
    for taken in walk.wander(12, 300):
        t = taken.transition
        assert t.changed is not None
        assert views(t.before, t.changed, "slots") == views(t.after, t.changed, "slots")
        assert views(t.before, t.changed, "nodes") == views(t.after, t.changed, "nodes")
        assert views(t.before, t.changed, "requests") == views(t.after, t.changed, "requests")
        kept += len(views(t.after, t.changed, "nodes"))
    assert kept > 200


def views(snapshot: Snapshot, changed: object, kind: str) -> dict[object, int]:
    """The identity of every view of this kind that the action did not touch."""
    touched = getattr(changed, kind)
    found = {getattr(view, "index", None) or getattr(view, "id", 0): view for view in getattr(snapshot, kind)}
    return {key: id(view) for key, view in found.items() if key not in touched and key != 0}


@pytest.mark.parametrize("policy", POLICIES, ids=name_of)
def test_a_clean_engine_is_clean_in_full_too(policy: CacheConfig) -> None:
    walk = Walk(factory(cache=policy))
    for taken in walk.wander(13, 500):
        assert walk.checker.check(replace(taken.transition, changed=None)) == taken.violations == ()


@pytest.mark.parametrize("fault", LEDGER_FAULTS)
def test_both_find_every_violation_of_a_fault_in_the_same_step(fault: str) -> None:
    num_broken = 0
    for seed in range(20):  # five walks, and more for a fault that is seldom met
        num_broken += compare_findings(factory(fault, cache=cache_for(fault)), seed)
        if num_broken and seed >= 4:
            return
    pytest.fail(f"{fault} was not met")


def compare_findings(made: EngineFactory, seed: int) -> int:
    """Compare what each way finds for the first time, step by step; return how many violations there were.

    A violation that stays is found again by the full check alone. Some faults end in a state in which the
    engine itself cannot go on, long after they were found.
    """
    walk, incrementally, fully = Walk(made), Findings(), Findings()
    try:
        for taken in walk.wander(seed, 500):
            fresh = incrementally.fresh(taken.violations)
            assert fresh == fully.fresh(walk.checker.check(replace(taken.transition, changed=None)))
    except BREAKDOWNS:
        assert fully.seen or set(made.faults) & BREAKS_DOWN
    return len(fully.seen)


class Findings:
    """The violations found so far, by invariant and subject."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str]] = set()

    def fresh(self, violations: Iterable[Violation]) -> set[tuple[str, str]]:
        """Those among ``violations`` that were not there before."""
        new = {(violation.invariant, violation.subject) for violation in violations} - self.seen
        self.seen |= new
        return new
