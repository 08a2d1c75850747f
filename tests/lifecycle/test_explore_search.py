"""The explorer: how many states a scope has, what is found in it, by the shortest way.

REPLAYLIFE_EXPLORE_ALL=1 looks for every fault that a scope can express, and exhausts the medium scopes.
"""

from __future__ import annotations

import os
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from replaylife.lifecycle.actions import Action
from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.explore import search
from replaylife.lifecycle.explore.counterexample import counterexample
from replaylife.lifecycle.explore.fingerprint import Reduced
from replaylife.lifecycle.explore.found import Budget, Edge, Ending, Found, never
from replaylife.lifecycle.explore.graph import TROUBLE, into_trouble, shortest_path, state_graph, write_graph
from replaylife.lifecycle.explore.kinds import KINDS
from replaylife.lifecycle.explore.loader import parse_scope, shipped_scope, shipped_scopes
from replaylife.lifecycle.explore.search import Search
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.scenario.errors import ScenarioError
from replaylife.lifecycle.scenario.loader import load_scenario
from replaylife.lifecycle.scenario.player import Player
from replaylife.lifecycle.snapshot import Transition, Violation
from replaylife.lifecycle.strategies import STRATEGIES

from .explore_pins import (
    CANNOT,
    EXACT,
    EXACT_IN_CI,
    MEDIUM_STATES,
    SHORTEST,
    SHOWN,
    STATES,
)
from .explore_support import scope

ALL = bool(os.environ.get("REPLAYLIFE_EXPLORE_ALL"))
slow = pytest.mark.skipif(not ALL, reason="set REPLAYLIFE_EXPLORE_ALL=1: takes minutes")
SMALL = sorted(name for name in shipped_scopes() if not name.endswith(("medium", "large")))
MEDIUM = sorted(name for name in shipped_scopes() if name.endswith("medium"))
LARGE = sorted(name for name in shipped_scopes() if name.endswith("large"))
TINY = scope(
    conversations=[
        {"name": "a", "count": 2, "turns": [{"prompt": [{"text": "system", "tokens": 2}, 1], "decode": 1}]}
    ],
    chunks=[],
    actions=["admit", "prefill", "decode", "finish", "abort"],
)


@cache
def explored(name: str, fault: str = "", symmetry: bool = True) -> Found:
    return Search(shipped_scope(name), (fault,) if fault else (), symmetry=symmetry).run()


# -- how many states there are -------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_a_small_scope_has_so_many_states(name: str) -> None:
    found = explored(name)
    assert found.ending is Ending.EXHAUSTED
    assert (found.states, found.transitions, found.depth) == STATES[name]
    assert sum(found.levels) == found.states
    assert never(shipped_scope(name), found) == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in EXACT_IN_CI else slow) for name in EXACT]
)
def test_without_the_reduction_there_are_more_and_the_verdict_is_the_same(name: str) -> None:
    found = explored(name, symmetry=False)
    assert found.ending is explored(name).ending is Ending.EXHAUSTED
    assert found.states == EXACT[name]
    assert found.states > explored(name).states


def test_every_strategy_has_scopes() -> None:
    of_windows, of_host_copies = (
        [name for name in SMALL if action in shipped_scope(name).actions] for action in ("verify", "offload")
    )
    for names in (SMALL, MEDIUM, LARGE, of_windows, of_host_copies):
        assert {shipped_scope(name).cache.strategy for name in names} == set(STRATEGIES)


def test_the_counts_of_all_small_and_medium_scopes_are_pinned() -> None:
    assert list(STATES) == list(EXACT) == SMALL
    assert list(MEDIUM_STATES) == MEDIUM
    assert set(EXACT) >= EXACT_IN_CI


def test_every_action_happens_in_some_shipped_scope() -> None:
    named = {action for name in shipped_scopes() for action in shipped_scope(name).actions}
    assert named == set(KINDS)


@slow
@pytest.mark.parametrize("name", MEDIUM)
def test_a_medium_scope_is_exhausted_without_a_violation(name: str) -> None:
    found = explored(name)
    assert found.ending is Ending.EXHAUSTED
    assert (found.states, found.transitions, found.depth) == MEDIUM_STATES[name]
    assert never(shipped_scope(name), found) == []


def test_a_search_gives_the_same_twice() -> None:
    first, again = (Search(TINY).run() for _ in range(2))
    assert (first.parents, first.via, first.moves) == (again.parents, again.via, again.moves)
    assert (first.kinds, first.situations) == (again.kinds, again.situations)


def test_merging_states_that_differ_hides_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted reduction forgets cursors: the search then misses what it finds with the true one."""
    seeded = ("cursor-survives-reuse",)
    small = scope(actions=["admit", "prefill", "decode", "abort"], cache={"slots": 3, "ring_length": 3})
    assert Search(small, seeded).run().ending is Ending.VIOLATION
    told_apart = Reduced.__call__

    def forgetful(self: Reduced) -> bytes:
        pool = self.world.engine.store.pool
        free = set(self.world.snapshot.free_slots)
        views = self.world.snapshot.slots
        for slot in free:
            object.__setattr__(views[slot], "write_pos", 0)
        try:
            return told_apart(self)
        finally:
            for slot in free:
                object.__setattr__(views[slot], "write_pos", pool.pending(slot))

    monkeypatch.setattr(Reduced, "__call__", forgetful)
    assert Search(small, seeded).run().ending is Ending.EXHAUSTED


# -- what is found -------------------------------------------------------------------------------------

IN_CI = (
    *("finish-donates-full-length", "donate-live-conv", "copy-active-slot", "cow-source-unpinned"),
    *("free-twice", "split-keeps-state-on-parent", "grid-from-chunk-start", "mixed-step-drops-copy"),
    *("stamp-kept-in-place", "match-refreshes-ancestors", "conv-not-rolled-back", "kept-counts-follow-rows"),
    *("window-crossing-unseen", "load-published-early", "retract-drops-ring", "cancel-leaks-host-copy"),
    *("transfer-without-fold", "rematch-takes-deeper-node", "slot-leaks-on-rejection"),
    *("pending-snapshot-leaks", "donation-without-exchange"),
)


def _found(fault: str) -> tuple[str, int]:
    name, length = SHORTEST[fault]
    found = explored(name, fault)
    assert found.ending is Ending.VIOLATION
    trouble = found.troubles[0]
    assert len(found.way_to(trouble)) == length
    broken = {violation.invariant for violation in trouble.violations}
    assert broken & set(FAULTS[fault].ledger) or fault in FOLLOWS
    return name, length


FOLLOWS = {"end-with-steps-in-flight"}  # what breaks first is another claim than those of its scenario


@pytest.mark.parametrize("fault", IN_CI)
def test_a_fault_is_found_by_the_shortest_way(fault: str) -> None:
    name, length = _found(fault)
    clean = explored(name)
    assert clean.ending is Ending.EXHAUSTED
    assert length >= 1


@slow
@pytest.mark.parametrize("fault", SHORTEST)
def test_every_fault_that_a_scope_can_express_is_found(fault: str) -> None:
    _found(fault)


def test_the_sweep_covers_every_fault_that_positions_can_show() -> None:
    assert set(SHORTEST) == {name for name, fault in FAULTS.items() if fault.ledger}
    assert set(SHORTEST) ^ set(CANNOT) == set(FAULTS)
    assert set(IN_CI) <= set(SHORTEST)
    assert len(IN_CI) >= 16


def test_the_reduction_changes_no_verdict_and_no_length() -> None:
    faults = "finish-donates-full-length", "unlock-missing", "grid-from-chunk-start", "conv-not-rolled-back"
    for fault in (*faults, "retract-drops-ring", "load-into-freed-slot", "transfer-abort-frees-twice"):
        name = SHORTEST[fault][0]
        ways = [Search(shipped_scope(name), (fault,), symmetry=symmetry).run() for symmetry in (True, False)]
        assert [len(found.way_to(found.troubles[0])) for found in ways] == [SHORTEST[fault][1]] * 2


def test_finish_donates_full_length_takes_four_actions_at_ring_length_two() -> None:
    small = shipped_scope("no-buffer-small")
    assert small.cache.ring_length == 2
    found = explored("no-buffer-small", "finish-donates-full-length")
    kinds = [type(move).__name__ for move in found.way_to(found.troubles[0])]
    assert kinds == ["Open", "Prefill", "Forward", "Finish"]


# -- as a scenario -------------------------------------------------------------------------------------


def _written(fault: str, folder: Path) -> Path:
    name = SHORTEST[fault][0]
    found = explored(name, fault)
    example = counterexample(shipped_scope(name), (fault,), found, found.troubles[0])
    path = folder / "found.yaml"
    path.write_text(example.scenario, encoding="utf-8")
    return path


@pytest.mark.parametrize("fault", IN_CI)
def test_what_is_found_is_a_scenario_that_plays_the_same(fault: str, tmp_path: Path) -> None:
    scenario = load_scenario(_written(fault, tmp_path))
    config = EngineConfig(scenario.model, scenario.cache)
    verdict = Player(scenario, EngineFactory(config, scenario.faults).build()).run()
    first = min(step for step, _ in verdict.violations)
    assert first == SHORTEST[fault][1]
    assert (
        verdict.violations[0][1].invariant
        == explored(*SHORTEST[fault][:1], fault).troubles[0].violations[0].invariant
    )


def _on_tensors(fault: str, folder: Path) -> list[Violation]:
    """What a written scenario breaks on tensors; without the fault, nothing."""
    scenario = load_scenario(_written(fault, folder))
    config = EngineConfig(scenario.model, scenario.cache, "torch")
    assert Player(scenario, EngineFactory(config).build()).run().violations == []
    seeded = Player(scenario, EngineFactory(config, scenario.faults).build()).run().violations
    assert min(step for step, _ in seeded) == SHORTEST[fault][1]
    return [violation for _, violation in seeded]


WRONG = {  # where the logits are wrong: in turn 2, in the request itself, or both
    "finish-donates-full-length": {"request a.next"},
    "window-crossing-unseen": {"request a.next"},
    "conv-not-rolled-back": {"request a", "request a.next"},
    "retract-drops-ring": {"request a", "request a.next"},
    "transfer-without-fold": {"request a", "request a.next"},
}


@pytest.mark.parametrize("fault", WRONG)
def test_on_real_tensors_the_damage_is_in_the_logits(fault: str, tmp_path: Path) -> None:
    warm = [v.subject for v in _on_tensors(fault, tmp_path) if v.invariant == "warm-equals-cold"]
    assert set(warm) == WRONG[fault]


@slow
@pytest.mark.parametrize("fault", SHORTEST)
def test_what_is_pinned_as_shown_is_wrong_in_the_logits(fault: str, tmp_path: Path) -> None:
    broken = {violation.invariant for violation in _on_tensors(fault, tmp_path)}
    assert ("warm-equals-cold" in broken) == (fault in SHOWN)
    assert len(SHOWN) >= 20


# -- the end of a search -------------------------------------------------------------------------------


def test_a_budget_of_states_ends_a_search() -> None:
    found = Search(TINY, budget=Budget(states=10)).run()
    assert (found.ending, found.states) == (Ending.BUDGET, 10)


def test_a_budget_of_time_ends_a_search() -> None:
    found = Search(shipped_scope("no-buffer-small"), budget=Budget(seconds=1e-6)).run()
    assert found.ending is Ending.BUDGET


def test_an_interrupt_gives_what_was_found_and_checked_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = explored("no-buffer-small")
    hunt, calls = Search(shipped_scope("no-buffer-small")), count(1)
    apply = hunt.world.apply

    def interrupted(kind: str, action: Action, step: int) -> Transition:
        if next(calls) == whole.transitions // 2:
            raise KeyboardInterrupt
        return apply(kind, action, step)

    monkeypatch.setattr(hunt.world, "apply", interrupted)
    found = hunt.run()
    assert found.ending is Ending.INTERRUPTED
    assert 1 < found.states < whole.states
    assert found.parents == whole.parents[: found.states]
    assert found.kinds.total() == found.transitions
    assert max(found.via) < len(found.moves) == len(found._numbers)


HUNTS = [
    ("no-buffer-small", "finish-donates-full-length"),
    ("no-buffer-small", "slot-leaks-on-abort"),
    ("extra-buffer-small", "grid-from-chunk-start"),
    ("extra-buffer-small", "end-with-steps-in-flight"),
    ("no-buffer-small", ""),
]
SLOW_HUNTS = [pytest.param(name, fault, marks=slow) for fault, (name, _) in SHORTEST.items()]


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize(("name", "fault"), [*HUNTS, *SLOW_HUNTS])
def test_checking_many_transitions_at_once_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, fault: str, stop: bool
) -> None:
    def seen() -> tuple[object, ...]:
        edges: list[Edge] = []
        found = Search(shipped_scope(name), (fault,) if fault else (), stop=stop, edge=edges.append).run()
        assert bool(found.troubles) == bool(fault)
        counts = found.states, found.transitions, found.refused, found.kinds, found.situations, found.levels
        troubles = [(t.parent, t.kind, t.move, t.violations, t.breakdown) for t in found.troubles]
        return found.ending, counts, found.parents, found.via, found.moves, troubles, edges

    at_once = seen()
    monkeypatch.setattr(search, "BATCH", 1)
    assert at_once == seen()


def test_a_bound_on_depth_is_told() -> None:
    found = Search(scope(depth=3)).run()
    assert (found.depth, found.ending) == (3, Ending.EXHAUSTED)
    assert found.cut == found.levels[-1] > 0


def test_a_bound_on_an_action_is_kept() -> None:
    bounded = Search(scope(at_most={"decode": 0, "abort": 1}, depth=6)).run()
    assert bounded.kinds["decode"] == 0
    assert bounded.kinds["abort"] > 0


def test_a_situation_that_never_comes_about_is_named() -> None:
    wanting = scope(reaches=["two-in-flight", "hit"], depth=6)
    assert never(wanting, Search(wanting).run()) == ["two-in-flight"]


# -- the graph -----------------------------------------------------------------------------------------


def test_the_graph_has_every_state_and_transition() -> None:
    graph, found = state_graph(TINY)
    assert graph.number_of_nodes() == found.states
    assert graph.number_of_edges() == found.transitions
    assert {graph.nodes[node]["depth"] for node in graph} == set(range(found.depth + 1))
    assert TROUBLE not in graph


def test_the_graph_shows_the_way_into_trouble() -> None:
    graph, found = state_graph(TINY, ("finish-donates-full-length",))
    assert shortest_path(graph, TROUBLE) == ["admit a1", "prefill a1 (3 tokens)", "decode a1", "finish a1"]
    counts = into_trouble(graph)
    assert {kind for kind, count in counts.items() if count[TROUBLE]} == {"finish"}
    assert counts["finish"]["fine"] > 0
    assert sum(count[TROUBLE] for count in counts.values()) == len(found.troubles)
    into = next(iter(graph.in_edges(TROUBLE, data=True)))
    assert into[2]["breaks"] == "key-matches-state"


def test_a_shortest_path_is_as_long_as_the_state_is_deep() -> None:
    graph, found = state_graph(TINY)
    for state in range(found.states):
        assert len(shortest_path(graph, state)) == graph.nodes[state]["depth"] == len(found.path(state))


def test_the_graph_can_be_written_and_read(tmp_path: Path) -> None:
    import networkx as nx

    graph, _ = state_graph(TINY)
    write_graph(graph, tmp_path / "g.graphml")
    assert (
        nx.read_graphml(tmp_path / "g.graphml", force_multigraph=True).number_of_edges()
        == graph.number_of_edges()
    )
    write_graph(graph, tmp_path / "g.dot")
    assert (tmp_path / "g.dot").read_text().count("->") == graph.number_of_edges()
    with pytest.raises(ValueError, match=r"need .graphml or .dot"):
        write_graph(graph, tmp_path / "g.png")


# -- scope files ---------------------------------------------------------------------------------------

GOOD = "title: t\nconversations:\n  - {name: a, turns: [{prompt: 2}]}\nactions: [admit]\n"
BAD = {
    "an unknown key": (GOOD + "dept: 3\n", r"x:5: unknown key 'dept'; did you mean 'depth'"),
    "an unknown action": (GOOD.replace("admit", "admitt"), r"x:4: .*admitt.*did you mean 'admit'"),
    "a name twice": (
        GOOD.replace("actions", "  - {name: a, turns: [{prompt: 3}]}\nactions"),
        r"x:.*there twice",
    ),
    "a bound on no action": (GOOD + "at_most: {abort: 1}\n", "not among the actions"),
    "overlap left out": (GOOD.replace("[admit]", "[admit, commit]"), "needs cache.overlap: on"),
    "windows left out": (GOOD.replace("[admit]", "[admit, verify]"), r"needs sizes of windows; add windows"),
    "no host memory": (GOOD.replace("[admit]", "[admit, offload]"), "needs cache.host_slots of at least 1"),
    "no other pool": (GOOD.replace("[admit]", "[admit, transfer]"), "needs cache.peer_slots of at least 1"),
    "no conversations": ("title: t\nactions: [admit]\n", "conversations: missing"),
    "a list": ("- a\n", "found no mapping"),
    "no YAML": ("a: [\n", "not YAML"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_scope_is_told_with_its_line(what: str) -> None:
    text, message = BAD[what]
    with pytest.raises(ScenarioError, match=message):
        parse_scope(text.encode(), "x")


def test_a_good_scope_is_read() -> None:
    assert parse_scope(GOOD.encode(), "x").conversations[0].name == "a"


def test_own_tokens_that_begin_alike_by_chance_are_told() -> None:
    names = "\n".join(f"  - {{name: n{number}, count: 6, turns: [{{prompt: 1}}]}}" for number in range(6))
    text = f"title: t\nconversations:\n{names}\nactions: [admit]\n"
    with pytest.raises(ScenarioError, match="begin by chance like those of"):
        parse_scope(text.encode(), "x")
