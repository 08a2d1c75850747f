"""The chain of a violation: planted by, carried by, bites at."""

from __future__ import annotations

from replaylife.lifecycle.events import (
    AdmissionRejected,
    Finished,
    Matched,
    PublishSkipped,
    Released,
    StepCommitted,
    StepScheduled,
)
from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.trace.causes import Causes
from replaylife.lifecycle.trace.chain import MAX_CARRIED, Chain
from replaylife.lifecycle.trace.telling import tell
from replaylife.playing import Result, play
from replaylife.reference import entries

SCENARIOS = {entry.id: entry.scenario for entry in entries("fault") if entry.ledger}

UNTOLD = (AdmissionRejected, Finished, Matched, PublishSkipped, Released, StepCommitted, StepScheduled)


def _followed(result: Result, *, first: int = 1, limit: int = 1_000) -> Causes:
    causes = Causes(limit)
    for played in result.played[first - 1 :]:
        causes.follow(played.transition, played.fresh)
    return causes


def _told(chain: Chain) -> list[str]:
    links = [chain.planted, *chain.carried, *chain.bites]
    return [f"{link.steps}, {link.action.partition(' (')[0]}: {link.text}" for link in links]


def test_the_full_length_donation_is_followed_from_the_ring_to_the_next_turn() -> None:
    causes = _followed(play("multiturn", faults=["finish-donates-full-length"]))
    (chain,) = causes.chains
    assert _told(chain) == [
        "steps 20..23, decode turn1: tokens 27..30 of turn1 in the ring of slot 1; temporal stays at 26",
        "step 24, finish turn1: slot 1 is donated to node 3 under a key of 30: temporal 26, conv 26",
        "step 25, admit turn2: turn2 reuses 30 tokens by the state of node 3",
        "step 26, prefill turn2: slot 1 is copied to slot 4: 26 tokens",
        "step 26, prefill turn2: slot 4 is copied to slot 5: 35 tokens",
        "step 26, prefill turn2: slot 5 becomes the state of node 4 under a key of 39: temporal 35, conv 35",
        "step 47, finish turn2: slot 4 is donated to node 5 under a key of 59: temporal 51, conv 51",
        "step 26, prefill turn2: turn2 computes tokens 31..39 from slot 4 (after it: temporal 35, conv 35)",
    ]
    assert {violation.subject for _, violation in chain.also} == {"node 4", "request turn2", "node 5"}


def test_on_tensors_it_bites_the_logits_and_then_the_reply() -> None:
    causes = _followed(play("multiturn", faults=["finish-donates-full-length"], backend="torch"))
    (chain,) = causes.chains
    logits, reply = chain.bites
    assert (logits.first, reply.first) == (26, 47)
    assert "the logits of turn2 part from the cold run's at position 30" in logits.text
    assert reply.text == "21 of the 21 reply tokens differ from the cold run's"


def test_the_live_window_is_planted_by_the_decodes_that_moved_it_on() -> None:
    (chain,) = _followed(play("multiturn", faults=["donate-live-conv"])).chains
    assert chain.planted.steps == "steps 20..23"
    assert chain.carried[0].text == "slot 1 is donated to node 3 under a key of 26: temporal 26, conv 30"


def test_records_left_behind_by_a_copy_plant_it() -> None:
    chain = _followed(play(SCENARIOS["copy-active-slot"], faults=["copy-active-slot"])).chains[0]
    assert (chain.planted.first, chain.planted.last, chain.step) == (3, 8, 9)
    assert "6 records stay behind" in chain.carried[0].text


def test_what_a_backup_leaves_behind_is_followed_to_host_memory_and_back() -> None:
    (chain,) = _followed(play(SCENARIOS["retract-drops-ring"], faults=["retract-drops-ring"])).chains
    assert _told(chain)[:3] == [
        "steps 3..6, decode a: tokens 11..14 of a in the ring of slot 1; temporal stays at 10",
        "step 7, retract a: the backup of request a arrives, from slot 1 to host place 0: 10 tokens, "
        "4 records stay behind",
        "step 8, admit a: the restore of request a arrives, from host place 0 to slot 3: 10 tokens",
    ]
    assert [link.first for link in chain.bites] == [9]
    assert {violation.subject for _, violation in chain.also} == {"slot 1", "request a", "node 2"}


def test_a_state_taken_from_a_slot_that_its_load_gave_back_is_still_the_same_story() -> None:
    (chain,) = _followed(play(SCENARIOS["load-published-early"], faults=["load-published-early"])).chains
    assert "slot 3 is copied to slot 5: 5 tokens" in [link.text for link in chain.carried]


def test_a_window_is_told_by_the_tokens_that_went_in_and_those_kept() -> None:
    (chain,) = _followed(play(SCENARIOS["conv-not-rolled-back"], faults=["conv-not-rolled-back"])).chains
    assert chain.planted.text == (
        "tokens 11..14 of a go into slot 1 as a window; 2 of 4 tokens are kept: temporal 10, conv 14, ring 2"
    )


def test_no_event_of_any_seeded_fault_is_told_by_its_class_alone() -> None:
    told = 0
    for fault, scenario in SCENARIOS.items():
        for played in play(scenario, faults=[fault]).played:
            for event in played.transition.events:
                told += 1
                assert tell(event, played.transition) != type(event).__name__ or type(event) in UNTOLD
    assert told >= 1_000


def test_a_lock_that_stays_is_planted_where_it_should_have_gone() -> None:
    (chain,) = _followed(play(SCENARIOS["unlock-missing"], faults=["unlock-missing"])).chains
    assert chain.planted.first == chain.step
    assert chain.bites == []


def test_a_slot_freed_twice_bites_where_it_is_handed_out_again() -> None:
    chains = _followed(play(SCENARIOS["free-twice"], faults=["free-twice"])).chains
    assert any("freed" in link.text for chain in chains for link in [chain.planted, *chain.carried])


def test_nothing_broken_nothing_told() -> None:
    assert _followed(play("multiturn")).chains == []
    assert _followed(play("agents")).of == {}


def test_every_violation_of_every_seeded_fault_has_a_chain_in_order() -> None:
    seen = 0
    for fault, scenario in SCENARIOS.items():
        result = play(scenario, faults=[fault])
        causes = _followed(result)
        for step, violation in result.violations:
            chain = causes.of[step, violation.invariant, violation.subject]
            assert chain.planted.first <= chain.planted.last <= step, fault
            assert all(link.first >= chain.planted.first for link in (*chain.carried, *chain.bites)), fault
            assert chain.planted.text
            assert len(chain.carried) <= MAX_CARRIED
            seen += 1
    assert len(SCENARIOS) >= 25 <= len(FAULTS)
    assert seen >= 60


def test_a_part_of_a_run_says_that_its_root_may_lie_before() -> None:
    result = play("multiturn", faults=["finish-donates-full-length"])
    assert _followed(result).chains[0].cut is False
    assert _followed(result, first=22).chains[0].cut is True


def test_chains_beyond_the_limit_are_counted() -> None:
    causes = _followed(play(SCENARIOS["evict-ignores-locks"], faults=["evict-ignores-locks"]), limit=1)
    assert len(causes.chains) == 1
    assert causes.num_left_out >= 1
