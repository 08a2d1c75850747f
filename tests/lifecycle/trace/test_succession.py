"""A snapshot must follow from the one before: a real trace passes, a tampered one does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from replaylife.lifecycle.actions import Action
from replaylife.lifecycle.events import Event
from replaylife.lifecycle.trace.succession import FOLLOWS, RULES
from replaylife.lifecycle.trace.succession_slots import MAY_WRITE

from .support import SHIPPED, joined, judged, lines_of, recorded, steps_of, tampered
from .tampering import Tampering, change, event, node, request, require_caught, slot, without

# Faults that do something no event reports, or report what their action cannot bring about: the only
# scenarios with a step that does not follow.
UNEXPLAINED = {
    "cancel-leaks-host-copy": ["request a"],
    "cursor-advances-per-layer": ["slot 1"],
    "donate-live-conv": ["slot 1", "slot 4"],
    "end-with-steps-in-flight": ["Finished", "request a"],
    "ends-inside-window": ["Finished", "request a", "slot 1"],
    "free-twice": ["slot 1"],
    "host-copy-of-reused-slot": ["node 1"],
    "kv-hit-taken-for-state": ["request b"],
    "load-into-freed-slot": ["node 1"],
    "load-published-early": ["Published", "node 1"],
    "pending-snapshot-leaks": ["slot 3"],
    "phantom-record-per-window": ["slot 1"],
    "publish-at-schedule": ["Published", "node 1", "request a", "slot 2"],
    "rejected-records-stay": ["slot 1"],
    "rematch-takes-deeper-node": ["request b"],
    "retract-drops-ring": ["request a"],
    "sentinel-freed": ["slot -1"],
    "slot-leaks-on-abort": ["slot 1"],
    "split-keeps-state-on-parent": ["node 1", "node 2", "slot 2"],
    "stamp-from-next-step": ["request a", "request b"],
    "stash-leaves-slot-unfilled": ["request a", "slot 2", "slot 3"],
    "transfer-abort-frees-twice": ["request a"],
    "transfer-without-fold": ["request a"],
    "window-end-at-track-point": ["slot 3"],
    "window-overwrites-ring": ["slot 1"],
}


@pytest.mark.parametrize("name", SHIPPED)
def test_every_step_of_an_untampered_trace_follows_from_the_one_before(name: str, tmp_path: Path) -> None:
    judgement = judged(recorded(name), tmp_path)
    subjects = {f.violation.subject for f in judgement.violations if f.violation.invariant == FOLLOWS}
    assert sorted(subjects) == UNEXPLAINED.get(name, [])
    assert judgement.steps >= 2


@pytest.mark.parametrize("name", UNEXPLAINED)
def test_without_its_fault_every_step_follows(name: str, tmp_path: Path) -> None:
    judgement = judged(recorded(name, without_its_faults=True), tmp_path)
    assert [f for f in judgement.violations if f.violation.invariant == FOLLOWS] == []
    assert judgement.steps >= 2


FOLDS = 15  # the 16th decode step of multiturn folds the ring
TAMPERINGS = {
    "a free slot is written": Tampering(slot(7, temporal=[5, "aa"]), "slot 7", "temporal"),
    "a free slot's window moves": Tampering(slot(7, conv=[5, "aa"]), "slot 7", "conv"),
    "temporal grows with nothing folded": Tampering(slot(1, temporal=[11, "aa"]), "slot 1", "temporal"),
    "a record is not appended": Tampering(slot(1, ring={"at": 0, "cut": 0, "put": []}), "slot 1", "ring"),
    "an old record changes": Tampering(
        slot(1, ring=[["turn1", 10, 3], ["turn1", 11, 4]]), "slot 1", "ring", nth=1
    ),
    "the cursor is off by one": Tampering(slot(1, write_pos=2), "slot 1", "write_pos"),
    "the device's cursor is off": Tampering(slot(1, device_write_pos=0), "slot 1", "write_pos", nth=2),
    "written names another step": Tampering(slot(1, written=999), "slot 1", "written"),
    "a fold is not reported": Tampering(without("StateFolded"), "slot 1", "temporal", nth=FOLDS),
    "a fold reports fewer records": Tampering(
        event("StateFolded", records=9), "slot 1", "temporal", nth=FOLDS
    ),
    "a fold reports another length": Tampering(
        event("StateFolded", length=27), "slot 1", "StateFolded.length", nth=FOLDS
    ),
    "a slot has another owner": Tampering(slot(1, owners=[["tree", "1"]]), "slot 1", "owned by|owners"),
    "a slot leaves the free list": Tampering(
        change(free_slots={"at": 0, "cut": 1, "put": []}), "slot 4", "free_slots"
    ),
    "a slot is free twice": Tampering(
        change(free_slots={"at": 0, "cut": 0, "put": [5]}), "slot 5", "free_slots"
    ),
    "an allocation is not reported": Tampering(
        without("Allocated"), "slot 2", "free_slots|temporal", at="Prefill"
    ),
    "a copy reports another length": Tampering(
        event("CheckpointCopied", length=9), "slot 2", "CheckpointCopied.length", at="Prefill"
    ),
    "a copy reports another length inside its chunk": Tampering(
        event("CheckpointCopied", length=5), "slot 8", "temporal covers 8", at=7, scenario="branching"
    ),
    "a node keeps no state": Tampering(node(1, state=None), "node 1", "state"),
    "a node's key changes": Tampering(node(1, key=[6, "aa"]), "node 1", "key"),
    "a node's key grows": Tampering(node(2, key=[11, "aa"], kv_tokens=5), "node 2", "key"),
    "a node owns more tokens": Tampering(node(1, kv_tokens=7), "node 1", "kv_tokens"),
    "a node is hung elsewhere": Tampering(node(2, parent=None), "node 2", "parent"),
    "a node takes its state earlier": Tampering(node(1, published=1), "node 1", "published"),
    "a node becomes more recent": Tampering(node(1, recency=99), "node 1", "recency"),
    "a lock is lost": Tampering(node(2, state_lock=0), "node 2", "state lock"),
    "the order of eviction changes": Tampering(change(lru=[2, 1]), "LRU list", "order"),
    "a node goes without an eviction": Tampering(change(node_ids=[1], lru=[1]), "node 2", "node gone"),
    "an eviction names no node": Tampering(
        event("Evicted", tombstoned=[], removed=[]),
        "node",
        "state none|node gone",
        at="evicting",
        scenario="eviction-pressure",
    ),
    "an eviction returns no slot": Tampering(
        event("Evicted", slots=[]),
        "slot",
        "free_slots|Allocated",
        at="evicting",
        scenario="eviction-pressure",
    ),
    "a publication is of another slot": Tampering(
        event("Published", slot=7), "node 1", "state", at="Prefill"
    ),
    "a publication is of another length": Tampering(
        event("Published", key_len=5), "node 1", "Published.key_len", at="Prefill"
    ),
    "a request runs ahead": Tampering(request(executed=12), "request turn1", "executed"),
    "a request absorbs other tokens": Tampering(request(tokens=[11, "aa"]), "request turn1", "tokens"),
    "a request changes its prompt": Tampering(request(prompt_len=9), "request turn1", "prompt_len"),
    "a request copies again": Tampering(request(copies=1), "request turn1", "copies"),
    "another request changes": Tampering(
        lambda s: s["changes"]["requests"].append({"id": "planner", "phase": "closing"}),
        "request planner",
        "phase",
        at="coder",
        scenario="agents",
    ),
    "a request vanishes": Tampering(change(request_ids=[], requests=[]), "request turn1", "request gone"),
    "a decode step is not reported": Tampering(without("Decoded"), "Decoded", "requests none"),
    "a decode step is at another position": Tampering(
        event("Decoded", position=12), "request turn1", "Decoded from 12"
    ),
    "a decode step starts at another cursor": Tampering(
        event("Decoded", cursor_before=3), "slot 1", "Decoded.cursor_before"
    ),
    "a decode step ends at another cursor": Tampering(
        event("Decoded", cursor_after=3), "slot 1", "Decoded.cursor_after"
    ),
    "an event that this action cannot have": Tampering(
        lambda s: s["events"].append(
            {"type": "Released", "request": "turn1", "pending": 0, "retracted": False, "committed": 11}
        ),
        "Released",
        "event reported",
    ),
    "another action": Tampering(
        lambda s: s.update(action={"type": "Flush", "request": "turn1"}), "Decoded", "event reported"
    ),
    "a chunk of another size": Tampering(
        lambda s: s["action"].update(count=5), "request turn1", "Prefilled", at="Prefill"
    ),
    "a reply of other tokens": Tampering(
        lambda s: s["events"][-1]["reply"].reverse(), "request turn1", "Finished.reply", at="Finish"
    ),
    "tokens come from nowhere": Tampering(change(kv_free=999), "key-value tokens", "999 free"),
    "the ring's length changes": Tampering(change(ring_length=32), "engine", "ring_length"),
    "the track point changes": Tampering(change(track_point=512), "engine", "track_point"),
    "the pool of tokens grows": Tampering(change(kv_capacity=512), "engine", "kv_capacity"),
}


@pytest.mark.parametrize("case", TAMPERINGS)
def test_a_tampered_step_is_caught_with_its_number_and_field(case: str, tmp_path: Path) -> None:
    require_caught(TAMPERINGS[case], tmp_path)


def test_tokens_that_were_never_sampled_are_caught_in_the_step_that_runs_them(tmp_path: Path) -> None:
    step, raw = tampered(
        recorded("multiturn"), lambda s: s["action"]["type"] == "Forward", event("Decoded", sampled=255)
    )
    found = judged(raw, tmp_path).violations
    assert (found[0].step, found[0].violation.subject) == (step + 1, "request turn1")
    assert "tokens covers 12 (other tokens)" in found[0].violation.found


def test_a_prompt_of_other_tokens_is_caught_when_it_is_prefilled(tmp_path: Path) -> None:
    def other(step: Any) -> None:
        step["action"]["tokens"][0] += 1

    step, raw = tampered(recorded("multiturn"), lambda s: s["action"]["type"] == "Admit", other)
    found = judged(raw, tmp_path).violations
    assert {(f.step, f.violation.subject) for f in found[:2]} == {
        (step + 1, "request turn1"),
        (step + 1, "node 1"),
    }


def test_a_probe_may_change_nothing_at_all(tmp_path: Path) -> None:
    lines = lines_of(recorded("multiturn"))
    last = list(steps_of(lines))[-1]
    asked = {
        "type": "step",
        "step": last["step"] + 1,
        "action": {"type": "Probe", "tokens": [1, 2]},
        "events": [{"type": "Matched", "request": None, "kv_len": 0, "state_len": 0, "node": None}],
        "changes": {},
    }
    place = lines.index(last) + 1
    lines[-1]["steps"] += 1
    lines.insert(place, asked)
    assert judged(joined(lines), tmp_path).exit_code == 0
    for touched in (
        {"lru": [1]},
        {"nodes": [{"id": 1, "recency": 99}]},
        {"slots": [{"index": 3, "written": 48}]},
    ):
        lines[place] = {**asked, "changes": touched}
        judgement = judged(joined(lines), tmp_path)
        assert {f.step for f in judgement.violations} == {asked["step"]}, touched


def test_the_table_has_a_row_for_every_action_and_every_event() -> None:
    assert set(RULES) == set(get_args(Action))
    reported = {event for rule in RULES.values() for event in (*rule.outcome, *rule.others)}
    assert reported == set(get_args(Event))
    assert set(MAY_WRITE) <= set(get_args(Event))
    assert len(TAMPERINGS) >= 45
