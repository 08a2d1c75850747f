"""Thousands of random legal actions under pressure: nothing is broken, nothing leaks, everything happened."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from replaylife.lifecycle.actions import Action, Forward
from replaylife.lifecycle.config import CacheConfig, EngineConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.protocol import ActionRefused
from replaylife.lifecycle.scenario.loader import load_scenario
from replaylife.lifecycle.scenario.player import Played, Player
from replaylife.lifecycle.snapshot import Snapshot
from replaylife.lifecycle.wander.moves import Move
from replaylife.lifecycle.wander.shrink import as_scenario, shortest, shortest_violation
from replaylife.lifecycle.wander.situations import SITUATIONS
from replaylife.lifecycle.wander.walk import Walk, replay
from replaylife.lifecycle.wander.wanderer import WEIGHTS, Habits

from .wandering import POLICIES, Stroll, factory, name_of

ACTIONS = 5_000
FLOOR = 0.01
KINDS = {
    *("Admit", "Prefill", "Forward", "Checkpoint", "Finish", "Flush", "Retract", "Abort"),
    *("EvictStates", "EvictKv", "Probe"),
}
# Situations that a policy combination cannot have, and why.
NEEDS_A_RING = {"fold-in-mid-ring", "forced-fold", "full-ring-fold", "retract-with-a-pending-ring"}
# Rarer ones, which need only happen: forwards seldom have to evict where track points keep nothing.
NO_FLOOR = {"leave-before-the-copy", "forward-evicts"}
LEDGER_FAULTS = sorted(name for name, fault in FAULTS.items() if fault.ledger)
SEEDS = range(3)
TRITON_SEED = 44
WITHIN = 2_500

each_policy = pytest.mark.parametrize("policy", POLICIES, ids=name_of)


@cache
def long_stroll(policy: CacheConfig) -> tuple[Stroll, Snapshot | None]:
    stroll = Stroll(factory(cache=policy), seed=1, num_actions=ACTIONS)
    return stroll, None if stroll.broken else stroll.wind_up()


@each_policy
def test_five_thousand_random_actions_break_nothing(policy: CacheConfig) -> None:
    stroll, _ = long_stroll(policy)
    assert stroll.broken is None, stroll.explain()
    assert stroll.coverage.total == ACTIONS


@each_policy
def test_nothing_leaks_when_all_have_ended_and_everything_is_evicted(policy: CacheConfig) -> None:
    stroll, left = long_stroll(policy)
    assert left is not None, stroll.explain()
    assert (left.nodes, left.requests, left.lru) == ((), (), ())
    assert sorted(left.free_slots) == list(range(1, policy.slots))
    assert left.kv_free == left.kv_capacity
    engine = stroll.walk.engine
    assert engine.store.tree.root.kv_lock == 0  # type: ignore[attr-defined]  # the reference engine's
    assert engine.store.published == {}  # type: ignore[attr-defined]
    assert engine.store.tree.num_kv_tokens == 0  # type: ignore[attr-defined]


@each_policy
def test_every_action_is_at_least_one_percent_of_them(policy: CacheConfig) -> None:
    counts = long_stroll(policy)[0].coverage.actions
    assert set(counts) == KINDS
    assert {kind: count for kind, count in counts.items() if count < FLOOR * ACTIONS} == {}


@each_policy
def test_every_situation_that_matters_is_at_least_one_percent(policy: CacheConfig) -> None:
    counts = long_stroll(policy)[0].coverage.situations
    impossible = set() if policy.replayssm else NEEDS_A_RING
    assert set(counts) == set(SITUATIONS)
    assert all(counts[name] == 0 for name in impossible)
    floors = {name: 1 if name in NO_FLOOR else FLOOR * ACTIONS for name in set(SITUATIONS) - impossible}
    assert {name: counts[name] for name, floor in floors.items() if counts[name] < floor} == {}


def test_a_seed_makes_the_same_walk_again() -> None:
    first, again, other = (Stroll(factory(), seed, 300).moves for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("policy", [POLICIES[0], POLICIES[-2]], ids=name_of)
def test_two_hundred_actions_on_real_tensors_agree_with_the_oracle(policy: CacheConfig, gate: str) -> None:
    stroll = Stroll(factory(cache=policy, backend="torch", gate=gate), seed=2, num_actions=200)
    assert stroll.broken is None, stroll.explain()
    assert stroll.walk.engine.capabilities.numeric
    assert len(stroll.coverage.actions) == len(KINDS)


def test_twenty_actions_through_the_triton_kernels_agree_with_the_oracle(gate: str) -> None:
    busy = Habits(weights={**WEIGHTS, "forward": 200.0, "open": 60.0}, max_length=24)
    stroll = Stroll(factory(backend="triton", gate=gate), seed=TRITON_SEED, num_actions=20, habits=busy)
    assert stroll.broken is None, stroll.explain()
    assert stroll.coverage.situations["multi-row-forward"] >= 1
    assert stroll.coverage.actions["Forward"] >= 5


def test_fifty_witness_actions_find_the_ledger_true(gate: str) -> None:
    made = factory(backend="torch", gate=gate, witness=True)
    columns = made.config.model.heads * made.config.model.key_dim
    stroll = Stroll(made, seed=4, num_actions=50, habits=Habits(max_length=columns - 10))
    assert stroll.broken is None, stroll.explain()
    assert stroll.walk.engine.capabilities.witness
    assert stroll.coverage.situations["fold-in-mid-ring"] + stroll.coverage.situations["full-ring-fold"] >= 1


@cache
def hunts(fault: str) -> tuple[Stroll, ...]:
    return tuple(Stroll(factory(fault), seed, WITHIN) for seed in SEEDS)


@pytest.mark.parametrize("fault", LEDGER_FAULTS)
def test_random_actions_find_the_fault_without_its_scenario(fault: str) -> None:
    for stroll in hunts(fault):
        assert stroll.broken is not None, f"{fault} was not met in {WITHIN} actions"
        found = {violation.invariant for violation in stroll.broken.violations}
        assert found & set(FAULTS[fault].ledger), found


def test_the_sweep_covers_every_fault_that_positions_can_show() -> None:
    assert set(FAULTS) - set(LEDGER_FAULTS) == {"ring-stores-v"}
    assert len(LEDGER_FAULTS) >= 18
    for fault in LEDGER_FAULTS:
        print(f"{fault:32} {sorted(len(stroll.moves) for stroll in hunts(fault))} actions")


def test_a_failing_walk_is_told_as_a_short_scenario_that_can_be_played(tmp_path: Path) -> None:
    stroll = hunts("finish-donates-full-length")[0]
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


def test_a_walk_written_as_a_scenario_plays_the_same_actions(tmp_path: Path) -> None:
    one_row = Habits(weights={**WEIGHTS, "open": 1.5, "probe": 0.0})
    moves: list[Move] = []
    actions: list[Action] = []
    for taken in Walk(factory()).wander(5, 120, one_row):
        if isinstance(taken.move, Forward) and len(taken.move.rows) > 1:
            break  # which the language cannot say
        moves.append(taken.move)
        actions.append(taken.transition.action)
    path = tmp_path / "walk.yaml"
    path.write_text(as_scenario(factory().config, (), moves, "A walk"), encoding="utf-8")
    player = Player(load_scenario(path), factory().build())
    played: list[Action] = [o.transition.action for o in player.play() if isinstance(o, Played)]
    assert played == actions
    assert len(actions) >= 15


def test_shrinking_leaves_nothing_out_that_is_needed() -> None:
    needed = {3, 57, 58, 99}
    assert shortest(range(100), lambda left: needed <= set(left)) == sorted(needed)  # type: ignore[arg-type,comparison-overlap]


def test_shrinking_a_walk_keeps_the_violation_and_stops_at_one_minimal() -> None:
    made = factory("unlock-missing")
    stroll = hunts("unlock-missing")[0]
    moves = shortest_violation(made, stroll.moves, "locks-balanced")
    assert any(v.invariant == "locks-balanced" for v in replay(made, moves))
    assert all(not replay(made, moves[:i] + moves[i + 1 :]) for i in range(len(moves)))
    assert replay(factory(), moves) == ()
    assert len(moves) <= 4


def test_wandering_stops_where_a_chosen_move_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    walk = Walk(factory())
    walk.cast.retracted["nobody"] = []
    monkeypatch.setattr(walk.cast, "action", lambda _: None)
    with pytest.raises(ActionRefused, match="refers to a request that is not there"):
        list(walk.wander(1, 10))
