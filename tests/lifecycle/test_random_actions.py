"""Thousands of random legal actions under pressure: nothing is broken, nothing leaks, everything happened."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from replaylife.lifecycle.actions import Action
from replaylife.lifecycle.config import CacheConfig, EngineConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.protocol import ActionRefused
from replaylife.lifecycle.scenario.loader import load_scenario
from replaylife.lifecycle.scenario.player import Played, Player
from replaylife.lifecycle.snapshot import Snapshot
from replaylife.lifecycle.wander.shrink import as_scenario, shortest, shortest_violation
from replaylife.lifecycle.wander.situations import SITUATIONS
from replaylife.lifecycle.wander.walk import Walk, replay
from replaylife.lifecycle.wander.wanderer import WEIGHTS, Habits

from .wandering import (
    BREAKS_DOWN,
    COMBINATIONS,
    MORE_POLICIES,
    STRATEGIES,
    Stroll,
    cache_for,
    factory,
    name_of,
)

ACTIONS = int(os.environ.get("REPLAYLIFE_ACTIONS", "2000"))
SEED = 3
# One long shared text: prompts that meet inside an edge are what branch checkpoints come from.
BRANCHING = Habits(texts=1, text_tokens=20, own_tokens=3)
FLOOR = 0.01
WHOLE = {"Prefill", "Forward"}
PARTS = {"Schedule", "Execute", "Commit"}
WINDOWS = {"Verify", "Draft", "Commit"}
KINDS = {
    *("Admit", "Checkpoint", "Finish", "Flush", "Retract", "Abort", "EvictStates", "EvictKv", "Probe"),
    *WHOLE,
}
# Situations that some combinations cannot have, and why.
OF_WINDOWS = {
    *("window-kept-whole", "window-rejected-in-part", "window-thrown-away", "window-behind-records"),
    *("several-windows", "room-made-for-a-window", "checkpoint-inside-a-window"),
}
NEEDS_A_RING = {
    *("fold-in-mid-ring", "forced-fold", "full-ring-fold", "retract-with-a-pending-ring", *OF_WINDOWS),
}
IN_FLIGHT = {"finish-in-flight", "abort-in-flight", "retract-in-flight", "overshoot-discarded"}
NEEDS_OVERLAP = {"two-in-flight"}
NEEDS_TRACK_SLOTS = {"checkpoint-stamped", "stamped-slot-donated", "branch-checkpoint"}
NEEDS_ONE_TRACK_SLOT = {"second-slot-taken", "overwritten-in-place"}
NEEDS_BLOCKS = {"block-published"}
NEEDS_PLACES = {
    *(
        "offload-arrived",
        "load-arrived",
        "hit-in-host-memory",
        "copy-failed",
        "copy-refused",
        "session-ended",
    ),
    *("evicted-beside-a-copy", "backed-up", "restored", "transferred", "waiting-cancelled"),
}
NEEDS_A_DONATION = {"donation-onto-a-state"}  # align gives its slot up: its blocks are in the tree already
# Rarer ones, which need only happen: forwards seldom have to evict where track points keep nothing.
NO_FLOOR = {"leave-before-the-copy", "forward-evicts"}
# Without overlap only an open window is in flight. Under overlap a window needs an idle moment, and a row
# moves up only where a request leaves between two schedules.
SELDOM = {
    True: OF_WINDOWS | {"row-moved"},
    False: IN_FLIGHT | {"window-thrown-away"},
}
# Those that a tree of one-token pages under pressure has plenty of; elsewhere they need only happen, if ever.
OF_THE_TREE = {
    *("cow-under-pressure", "tombstone-hit-again", "donation-onto-a-state", "checkpoint-onto-a-state"),
    *("split", "full-ring-fold", "retract-with-a-pending-ring", *NO_FLOOR),
}
LEDGER_FAULTS = sorted(name for name, fault in FAULTS.items() if fault.ledger)
SEEDS = range(3)
TRITON_SEED = 65
WITHIN = 2_500
SHORT = 4

ON_TENSORS = 40  # on each of the 16 combinations and both gates: 1,280 in all
IN_WITNESS = [cache for cache in COMBINATIONS if cache.overlap == (cache.graph_rows is None)]

each_policy = pytest.mark.parametrize("policy", [*COMBINATIONS, *MORE_POLICIES], ids=name_of)
each_combination = pytest.mark.parametrize("policy", COMBINATIONS, ids=name_of)


def impossible_for(cache: CacheConfig) -> set[str]:
    """The situations that a combination cannot have."""
    lacks = [
        (cache.replayssm, NEEDS_A_RING),
        (cache.overlap, NEEDS_OVERLAP),
        (cache.overlap or cache.replayssm, IN_FLIGHT),
        (cache.track == "snapshot", {"checkpoint-inside-a-window"}),
        (cache.strategy in ("extra_buffer", "extra_buffer_lazy"), NEEDS_TRACK_SLOTS),
        (cache.strategy == "extra_buffer_lazy", NEEDS_ONE_TRACK_SLOT),
        (cache.strategy == "align", NEEDS_BLOCKS),
        (cache.host_slots, NEEDS_PLACES),
        (cache.strategy != "align", NEEDS_A_DONATION),
    ]
    return set().union(*(names for has, names in lacks if not has))


def floor_of(situation: str, cache: CacheConfig) -> float:
    """How many of the actions must be this situation."""
    if situation in NO_FLOOR:
        return 1 if cache.strategy == "no_buffer" and not cache.overlap else 0
    if situation in SELDOM[cache.overlap]:
        return 1
    if situation in OF_THE_TREE and (cache.strategy != "no_buffer" or cache.overlap):
        return 1
    return FLOOR * ACTIONS


@cache
def long_stroll(policy: CacheConfig) -> tuple[Stroll, Snapshot | None]:
    branching = policy.overlap and policy.strategy in ("extra_buffer", "extra_buffer_lazy")
    stroll = Stroll(factory(cache=policy), SEED, ACTIONS, BRANCHING if branching else None)
    return stroll, None if stroll.broken else stroll.wind_up()


@each_policy
def test_thousands_of_random_actions_break_nothing(policy: CacheConfig) -> None:
    stroll, _ = long_stroll(policy)
    assert stroll.broken is None, stroll.explain()
    assert stroll.coverage.total == ACTIONS


@each_policy
def test_nothing_leaks_when_all_have_ended_and_everything_is_evicted(policy: CacheConfig) -> None:
    stroll, left = long_stroll(policy)
    assert left is not None, stroll.explain()
    assert (left.nodes, left.requests, left.lru, left.in_flight) == ((), (), (), ())
    assert sorted(left.free_slots) == list(range(1, policy.slots))
    assert left.kv_free == left.kv_capacity
    engine = stroll.walk.engine
    assert engine.store.tree.root.kv_lock == 0  # type: ignore[attr-defined]  # the reference engine's
    assert engine.store.published == {}  # type: ignore[attr-defined]
    assert engine.store.tree.num_kv_tokens == 0  # type: ignore[attr-defined]


@each_combination
def test_every_action_is_at_least_one_percent_of_them(policy: CacheConfig) -> None:
    counts = long_stroll(policy)[0].coverage.actions
    assert set(counts) == KINDS | WINDOWS | (PARTS if policy.overlap else set())
    assert {kind: count for kind, count in counts.items() if count < FLOOR * ACTIONS} == {}


@each_combination
def test_every_situation_that_matters_is_at_least_one_percent(policy: CacheConfig) -> None:
    counts = long_stroll(policy)[0].coverage.situations
    impossible = impossible_for(policy)
    assert set(counts) == set(SITUATIONS)
    floors = {name: floor_of(name, policy) for name in set(SITUATIONS) - impossible}
    assert {name: counts[name] for name, floor in floors.items() if counts[name] < floor} == {}


@each_policy
def test_what_a_combination_cannot_have_does_not_happen(policy: CacheConfig) -> None:
    counts = long_stroll(policy)[0].coverage.situations
    assert {name: counts[name] for name in impossible_for(policy) if counts[name]} == {}


def test_the_sweep_covers_strategies_overlap_and_graph_mode() -> None:
    assert len(COMBINATIONS) == 16
    assert {cache.strategy for cache in COMBINATIONS} == set(STRATEGIES)


def test_a_seed_makes_the_same_walk_again() -> None:
    first, again, other = (Stroll(factory(), seed, 300).moves for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("policy", COMBINATIONS, ids=name_of)
def test_random_actions_on_real_tensors_agree_with_the_oracle(policy: CacheConfig, gate: str) -> None:
    stroll = Stroll(factory(cache=policy, backend="torch", gate=gate), seed=2, num_actions=ON_TENSORS)
    assert stroll.broken is None, stroll.explain()
    assert stroll.walk.engine.capabilities.numeric
    assert stroll.coverage.actions["Forward"] + stroll.coverage.actions["Execute"] >= 1


def test_twenty_actions_through_the_triton_kernels_agree_with_the_oracle(gate: str) -> None:
    busy = Habits(weights={**WEIGHTS, "forward": 200.0, "open": 60.0, "verify": 60.0}, max_length=24)
    stroll = Stroll(factory(backend="triton", gate=gate), seed=TRITON_SEED, num_actions=20, habits=busy)
    assert stroll.broken is None, stroll.explain()
    assert stroll.coverage.situations["multi-row-forward"] >= 1
    assert stroll.coverage.actions["Forward"] >= 5
    assert stroll.coverage.actions["Verify"] >= 1


@pytest.mark.parametrize("policy", IN_WITNESS, ids=name_of)
def test_fifty_witness_actions_find_the_ledger_true(policy: CacheConfig, gate: str) -> None:
    made = factory(cache=policy, backend="torch", gate=gate, witness=True)
    columns = made.config.model.heads * made.config.model.key_dim
    stroll = Stroll(made, seed=4, num_actions=50, habits=Habits(max_length=columns - 10))
    assert stroll.broken is None, stroll.explain()
    assert stroll.walk.engine.capabilities.witness
    assert stroll.coverage.actions["Forward"] + stroll.coverage.actions["Execute"] >= 3


@cache
def hunts(fault: str) -> tuple[Stroll, ...]:
    return tuple(Stroll(factory(fault, cache=cache_for(fault)), seed, WITHIN) for seed in SEEDS)


@pytest.mark.parametrize("fault", LEDGER_FAULTS)
def test_random_actions_find_the_fault_without_its_scenario(fault: str) -> None:
    named = 0
    for stroll in hunts(fault):
        if stroll.breakdown is not None and fault in BREAKS_DOWN:
            continue
        assert stroll.breakdown is None, repr(stroll.breakdown)
        assert stroll.broken is not None, f"{fault} was not met in {WITHIN} actions"
        found = {violation.invariant for violation in stroll.broken.violations}
        named += bool(found & set(FAULTS[fault].ledger))
    assert named >= 1, "only by what follows from it"


def test_the_sweep_covers_every_fault_that_positions_can_show() -> None:
    assert all(FAULTS[name].numeric for name in set(FAULTS) - set(LEDGER_FAULTS))
    assert len(LEDGER_FAULTS) >= 25
    for fault in LEDGER_FAULTS:
        print(f"{fault:32} {sorted(len(stroll.moves) for stroll in hunts(fault))} actions")


def test_a_failing_walk_is_told_as_a_short_scenario_that_can_be_played(tmp_path: Path) -> None:
    stroll = Stroll(factory(fault := "finish-donates-full-length", cache=cache_for(fault)), SHORT, WITHIN)
    told = stroll.explain()
    assert "Contradiction with key-matches-state" in told
    path = tmp_path / "found.yaml"
    path.write_text(told[told.index("title:") :], encoding="utf-8")
    scenario = load_scenario(path)
    assert len(scenario.steps) <= 5
    verdict = Player(
        scenario, EngineFactory(EngineConfig(scenario.model, scenario.cache), scenario.faults).build()
    ).run()
    assert {violation.invariant for _, violation in verdict.violations} == {"key-matches-state"}
    assert Player(scenario, EngineFactory(EngineConfig(scenario.model, scenario.cache)).build()).run().held


@pytest.mark.parametrize("policy", COMBINATIONS, ids=name_of)
def test_a_walk_written_as_a_scenario_plays_the_same_actions(policy: CacheConfig, tmp_path: Path) -> None:
    no_question = Habits(weights={**WEIGHTS, "probe": 0.0})
    made = factory(cache=policy)
    taken = list(Walk(made).wander(5, 150, no_question))
    path = tmp_path / "walk.yaml"
    text = as_scenario(made.config, (), [each.move for each in taken], "A walk")
    path.write_text(text, encoding="utf-8")
    player = Player(load_scenario(path), made.build())
    played: list[Action] = [o.transition.action for o in player.play() if isinstance(o, Played)]
    assert player.verdict.held, player.verdict.failures
    assert played == [each.transition.action for each in taken]
    steps = {line.split(":")[0].strip(" -") for line in text.splitlines() if line.startswith("  - ")}
    assert {
        "admit",
        "finish",
        *(("schedule", "execute", "commit") if policy.overlap else ("batch", "verify", "draft", "commit")),
    } <= steps


def test_shrinking_leaves_nothing_out_that_is_needed() -> None:
    needed = {3, 57, 58, 99}
    assert shortest(range(100), lambda left: needed <= set(left)) == sorted(needed)  # type: ignore[arg-type,comparison-overlap]


def test_shrinking_a_walk_keeps_the_violation_and_stops_at_one_minimal() -> None:
    made = factory("unlock-missing", cache=cache_for("unlock-missing"))
    stroll = hunts("unlock-missing")[1]
    moves = shortest_violation(made, stroll.moves, "locks-balanced")
    assert any(v.invariant == "locks-balanced" for v in replay(made, moves))
    assert all(not replay(made, moves[:i] + moves[i + 1 :]) for i in range(len(moves)))
    assert replay(factory(cache=cache_for("unlock-missing")), moves) == ()
    assert len(moves) <= 4


def test_wandering_stops_where_a_chosen_move_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    walk = Walk(factory())
    walk.cast.retracted["nobody"] = []
    monkeypatch.setattr(walk.cast, "action", lambda _: None)
    with pytest.raises(ActionRefused, match="refers to a request that is not there"):
        list(walk.wander(1, 10))
