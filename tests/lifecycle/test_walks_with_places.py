"""Random legal actions with host memory, transfers and forced retraction: nothing breaks, nothing leaks."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache

import pytest

from replaylife.lifecycle.config import CacheConfig
from replaylife.lifecycle.snapshot import Snapshot
from replaylife.lifecycle.trace.checker import TransitionChecker
from replaylife.lifecycle.wander.wanderer import Habits

from .from_scratch import snapshot_of
from .test_random_actions import NEEDS_PLACES
from .wandering import WITH_PLACES, Stroll, factory, name_of

ACTIONS = int(os.environ.get("REPLAYLIFE_ACTIONS", "2000"))
OFTEN = Habits(retract_every=7)
ON_TENSORS, IN_WITNESS = 40, 50
# A request that ends with steps in flight publishes little, and what it left is soon evicted.
RARE_UNDER_OVERLAP = {"session-ended", "hit-in-host-memory"}
COPYING = {"Offload", "Load", "Transfer", "FinishCopy", "AbortCopy", "EvictHost", "Cancel", "EndSession"}

each_policy = pytest.mark.parametrize("policy", WITH_PLACES, ids=name_of)


@cache
def long_stroll(policy: CacheConfig) -> tuple[Stroll, Snapshot | None]:
    stroll = Stroll(factory(cache=policy), 5, ACTIONS, OFTEN)
    return stroll, None if stroll.broken else stroll.wind_up()


@each_policy
def test_thousands_of_actions_with_copies_in_flight_break_nothing(policy: CacheConfig) -> None:
    stroll, _ = long_stroll(policy)
    assert stroll.broken is None, stroll.explain()
    assert stroll.coverage.total == ACTIONS


@each_policy
def test_no_slot_and_no_place_leaks(policy: CacheConfig) -> None:
    stroll, left = long_stroll(policy)
    assert left is not None, stroll.explain()
    assert (left.nodes, left.requests, left.copies, left.waiting) == ((), (), (), ())
    assert sorted(left.free_slots) == list(range(1, policy.slots))
    assert sorted(left.host_free) == list(range(policy.host_slots))
    assert sorted(left.peer_free) == list(range(policy.peer_slots))
    assert left.kv_free == left.kv_capacity


@each_policy
def test_every_action_and_every_situation_about_places_has_happened(policy: CacheConfig) -> None:
    coverage = long_stroll(policy)[0].coverage
    assert set(coverage.actions) >= COPYING
    rare = RARE_UNDER_OVERLAP if policy.overlap else set()
    assert {name for name in NEEDS_PLACES - rare if not coverage.situations[name]} == set()


def test_what_overlap_makes_rare_has_happened_under_overlap_too() -> None:
    walks = [long_stroll(policy)[0].coverage.situations for policy in WITH_PLACES if policy.overlap]
    assert {name for name in RARE_UNDER_OVERLAP if not any(walk[name] for walk in walks)} == set()


@each_policy
def test_a_second_opinion_explains_every_step(policy: CacheConfig) -> None:
    stroll, checker, seen = Stroll(factory(cache=policy), 0, 0), TransitionChecker(), 0
    for taken in stroll.walk.wander(8, 400, OFTEN):
        assert checker.check(taken.transition) == ()
        assert stroll.walk.checker.check(replace(taken.transition, changed=None)) == ()
        assert taken.transition.after == snapshot_of(stroll.walk.engine)  # type: ignore[arg-type]
        seen += bool(taken.transition.after.copies)
    assert seen >= 50


@each_policy
def test_copies_on_real_tensors_agree_with_the_oracle(policy: CacheConfig, gate: str) -> None:
    stroll = Stroll(factory(cache=policy, backend="torch", gate=gate), 4, ON_TENSORS, OFTEN)
    assert stroll.broken is None, stroll.explain()
    assert stroll.walk.engine.capabilities.numeric


@each_policy
def test_witness_actions_find_the_ledger_of_places_true(policy: CacheConfig, gate: str) -> None:
    made = factory(cache=policy, backend="torch", gate=gate, witness=True)
    columns = made.config.model.heads * made.config.model.key_dim
    habits = Habits(retract_every=7, max_length=min(40, columns - 10))
    stroll = Stroll(made, 5, IN_WITNESS, habits)
    assert stroll.broken is None, stroll.explain()
    assert stroll.walk.engine.capabilities.witness


def test_the_sweep_covers_every_strategy_with_and_without_overlap() -> None:
    assert len(WITH_PLACES) == 8
