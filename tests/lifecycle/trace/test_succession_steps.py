"""Steps in flight, stamps and track slots: a real trace follows, a tampered one does not."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from replaylife.lifecycle.actions import Admit, Commit, Execute, Schedule
from replaylife.lifecycle.config import CacheConfig, EngineConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.snapshot import Transition
from replaylife.lifecycle.trace.writer import TraceWriter

from .support import HEADER, judged, lines_of, recorded, steps_of
from .tampering import (
    Tampering,
    both,
    change,
    event,
    event_of,
    flight,
    request,
    require_caught,
    slot,
    without,
)

CLEAN = (
    "extra-buffer-multiturn", "extra-buffer-lazy-multiturn", "align-multiturn", "branching",
    "overlap-multiturn", "overlap-past-a-fold", "mixed-batch", "graph-mode", "rejected-admission",
    "verify-windows",
)  # fmt: skip

# A request with two track slots, 3 and 4. Step 7 is scheduled in 16 with slot 3 for its checkpoint, executed
# in 20 and committed in 21, which stamps it 16.
Stamping = partial(Tampering, scenario="stamp-from-next-step", without_its_faults=True)
# The only track slot, 4, was stamped 8 in 6; a step without a checkpoint is scheduled in 7.
Stamped = partial(Tampering, scenario="stamp-kept-in-place", without_its_faults=True)
# Request a finishes in 25 with step 9 in flight, which executes in 26 and commits in 27.
Ending = partial(Tampering, scenario="overlap-past-a-fold")

# Request a verifies windows in 3, 4, 5 (slot 1); with b it drafts in 9, which commits in 10.
Window = partial(Tampering, scenario="verify-windows")


@cache
def one_chunk() -> bytes:
    """A chunk is scheduled in step 2, with slot 2 for its checkpoint, executed in 3 and committed in 4."""
    actions = (Admit("a", tuple(range(9))), Schedule((), (("a", 8),)), Execute(), Commit())
    engine = EngineFactory(EngineConfig(cache=CacheConfig(overlap=True, slots=8))).build()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        with TraceWriter(path, HEADER) as trace:
            for step, action in enumerate(actions, start=1):
                before = engine.snapshot()
                events = engine.apply(action)
                trace.step(Transition(step, before, action, events, engine.snapshot(), engine.changed()))
            trace.finish()
        return path.read_bytes()


Chunk = partial(Tampering, record=one_chunk)


def publish_now(step: Any) -> None:
    """Bring forward the node that the chunk's step would publish if it committed."""
    key = [8, "aa"]
    step["events"].append(
        {"type": "Published", "request": "a", "node": 1, "slot": 2, "key_len": 8, "purpose": "chunk"}
    )
    new = {"id": 1, "parent": None, "key": key, "kv_tokens": 8, "state": 2, "state_lock": 0, "kv_lock": 0,
           "recency": 1, "published": step["step"], "first_page": [0]}  # fmt: skip
    step["changes"].update(node_ids=[1], nodes=[new], lru=[1])
    slot(2, owners=[["tree", "1"]])(step)


def aborted_instead(step: Any) -> None:
    place = step["events"].index(event_of(step, "Finished"))
    committed = step["events"][place]["committed"]
    step["events"][place] = {
        "type": "Released", "request": "a", "pending": 0, "retracted": False, "committed": committed,
    }  # fmt: skip


TAMPERINGS = {
    "a stamp appears before its step has committed": Stamping(
        request(stamps=[[3, [16, "aa"]]]), "request a", "stamps", at=20
    ),
    "a stamp grows without a committed step": Stamped(
        request(stamps=[[4, [9, "aa"]]]), "request a", "stamps slot 4 at 9", at=7
    ),
    "a stamp is lost": Stamped(request(stamps=[]), "request a", "stamps", at=9),
    "a stamp is longer than the row that commits": Stamping(
        request(stamps=[[3, [17, "aa"]]]), "request a", "stamps slot 3 at 17", at=21
    ),
    "a stamp is of a slot that the step has not written": Stamping(
        request(stamps=[[4, [16, "aa"]]]), "request a", "stamps slot 4 at 16", at=21
    ),
    "a stamp names other tokens": Stamping(
        request(stamps=[[3, [16, "aa"]]]), "request a", "stamp of slot 3 covers 16 (other tokens)", at=21
    ),
    "a track slot comes from nowhere": Stamping(
        both(request(track_slots=[3, 4, 9]), slot(9, owners=[["free", ""], ["request", "a"]])),
        "request a",
        "track_slots with slot 9",
        at=3,
    ),
    "a track slot is lost": Stamping(
        both(request(track_slots=[3]), slot(4, owners=[])), "request a", "track_slots without slot 4", at=3
    ),
    "a request comes in with a slot that was not taken": Stamping(
        request(track_slots=[2, 9]), "request a", "slots hold 1, 2, 9", at=1
    ),
    "a step is to write a slot that nobody took": Stamping(
        flight(0, copies=[9]), "step 2", "copies slot 9", at=3
    ),
    "a checkpoint goes to another slot than planned": Stamping(
        event("CheckpointCopied", dst=4), "step 7", "copies to slots 4", at=20
    ),
    "a slot of a step in flight becomes free": Chunk(
        both(change(free_slots={"at": 0, "cut": 0, "put": [2]}), slot(2, owners=[["free", ""]])),
        "slot 2",
        "free_slots",
        at=3,
    ),
    "a slot of a step in flight changes hands": Chunk(
        slot(2, owners=[["request", "a"]]), "slot 2", "owned by request a", at=3
    ),
    "a node is published while its step is in flight": Chunk(publish_now, "node 1", "Published slot 2", at=3),
    "executed passes scheduled": Ending(request(executed=99), "request a", "lengths committed", at="Execute"),
    "committed passes executed": Ending(request(committed=99), "request a", "lengths committed", at="Commit"),
    "committed takes the next step's token too": Ending(
        request(committed=12), "request a", "committed 12", at="Commit"
    ),
    "scheduled moves without a step": Ending(
        request(scheduled=99), "request a", "scheduled 99", at="Execute"
    ),
    "a step leaves without a commit": Ending(change(in_flight=[]), "step 2", "in_flight gone", at="Execute"),
    "a step executes twice": Ending(flight(0, executed_at=77), "step 2", "executed_at 77", at="Execute"),
    "a step in flight gets other rows": Ending(
        flight(0, rows=[["a", 10, 12]]), "step 2", "rows", at="Execute"
    ),
    "a step runs other tokens than scheduled": Ending(
        event("Decoded", position=12), "step 2", "rows", at="Execute"
    ),
    "a step is scheduled with other rows": Ending(
        event("StepScheduled", rows=[["a", 10, 12]]), "step 2", "StepScheduled.rows", at="Schedule"
    ),
    "another step commits": Ending(
        event("StepCommitted", number=77), "step 77", "StepCommitted.number", at="Commit"
    ),
    "a finish does not wait": Ending(request(phase="decode"), "request a", "phase decode", at=25),
    "a closing request vanishes before its last step": Ending(
        both(change(request_ids=[], requests=[]), slot(1, owners=[])), "request a", "request gone", at=26
    ),
    "a token past the end is not discarded": Ending(
        event("StepCommitted", discarded=[]), "step 9", "StepCommitted.discarded", at=27
    ),
    "a finish becomes an abort": Ending(aborted_instead, "request a", "Released as after Abort", at=27),
    "a finish claims the discarded token": Ending(
        event("Finished", committed=18), "request a", "Finished.committed 18", at=27
    ),
    "a window of other tokens": Window(
        event("Drafted", tokens=[1, 2, 3, 4]), "request a", "tokens", at="Verify"
    ),
    "a window longer than asked for": Window(
        event("Drafted", tokens=[1, 2, 3, 4, 5]), "step 2", "rows", at="Verify"
    ),
    "a window from elsewhere": Window(
        event("Drafted", position=11), "request a", "Drafted from 11", at="Verify"
    ),
    "one token more is kept": Window(
        event("Accepted", tokens=[1, 2, 3], sampled=[1, 2, 3]), "request a", "executed|committed", at="Verify"
    ),
    "other tokens are kept": Window(
        event("Accepted", tokens=[1, 2]), "request a", "kept-as-sampled|token 12", at="Verify"
    ),
    "a window that nobody closes": Window(without("Accepted"), "Accepted", "requests none", at="Verify"),
    "a window closed past its records": Window(
        event("Accepted", cursor_after=3), "slot 1", "Accepted.cursor_after 3", at="Verify"
    ),
    "a window opened before its records": Window(
        event("Drafted", cursor_before=1), "slot 1", "Drafted.cursor_before 1", at="Verify"
    ),
    "drafts left in a closed window": Window(
        request(drafts=[5]), "request a", "drafts of 1 tokens", at="Verify"
    ),
    "drafts lost from an open one": Window(request(drafts=[]), "request a", "drafts of 0 tokens", at="Draft"),
    "a checkpoint of other records": Window(
        event("CheckpointFolded", records=5),
        "slot 3",
        "CheckpointFolded.length 16|temporal",
        at="Verify",
        nth=1,
    ),
    "a checkpoint that nobody wrote": Window(
        without("CheckpointFolded"), "slot 3", "temporal", at="Verify", nth=1
    ),
    "rejected records stay": Window(
        slot(1, write_pos=3, device_write_pos=3), "slot 1", "write_pos 3", at="Verify"
    ),
    "the grid changes": Tampering(change(grid=2), "engine", "grid", scenario="extra-buffer-multiturn"),
    "a match is longer than its node": Tampering(
        event("Matched", state_len=25), "node 3", "Matched.state_len 25", at="Admit", nth=1
    ),
    "a rejected admission names a node that is not there": Tampering(
        event("AdmissionRejected", node=99),
        "node 99",
        "AdmissionRejected names it",
        at="rejected",
        scenario="rejected-admission",
    ),
}


@pytest.mark.parametrize("case", TAMPERINGS)
def test_a_tampered_step_is_caught_with_its_number_and_field(case: str, tmp_path: Path) -> None:
    require_caught(TAMPERINGS[case], tmp_path)


@pytest.mark.parametrize("name", CLEAN)
def test_a_trace_of_strategies_batches_and_overlap_is_judged_without_a_complaint(
    name: str, tmp_path: Path
) -> None:
    judgement = judged(recorded(name), tmp_path)
    assert (judgement.violations, judgement.differences, judgement.exit_code) == ([], [], 0)


def test_what_is_tampered_with_was_really_there() -> None:
    played = {name: list(steps_of(lines_of(recorded(name)))) for name in CLEAN}
    actions = {step["action"]["type"] for steps in played.values() for step in steps}
    assert actions >= {"Schedule", "Execute", "Commit", "Forward", "Prefill", "Finish"}
    purposes = {
        e["purpose"]
        for steps in played.values()
        for s in steps
        for e in s["events"]
        if e["type"] == "Published"
    }
    assert purposes >= {"chunk", "branch", "block", "finish"}
    assert len(TAMPERINGS) >= 30
