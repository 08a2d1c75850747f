"""Reading goes up to the damage and names it; jumps land where they should; memory does not grow."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replaylife.lifecycle.snapshot import NodeView, RequestView, SlotView, Snapshot
from replaylife.lifecycle.trace.checker import TransitionChecker
from replaylife.lifecycle.trace.errors import TraceDamaged, TraceError
from replaylife.lifecycle.trace.lines import MAX_LINE_BYTES
from replaylife.lifecycle.trace.reader import TraceReader
from replaylife.lifecycle.trace.writer import TraceWriter

from .support import HEADER, joined, lines_of, recorded, transitions

RAW = recorded("multiturn")
LINES = RAW.splitlines(keepends=True)
AT = 16  # the line (from 0) that the damage is done to: step 13


def read(raw: bytes, path: Path) -> tuple[int, str]:
    """How many transitions could be read, and what was said about the damage."""
    path.write_bytes(raw)
    count = 0
    with TraceReader(path) as reader:
        steps = iter(reader)
        while True:
            try:
                if next(steps, None) is None:
                    return count, ""
            except TraceDamaged as damage:
                return count, f"{damage.line}: {damage.message}"
            count += 1


def edited(change: Callable[[dict[str, Any]], object]) -> bytes:
    line = json.loads(LINES[AT])
    change(line)
    return b"".join([*LINES[:AT], json.dumps(line).encode() + b"\n", *LINES[AT + 1 :]])


def replaced(line: bytes) -> bytes:
    return b"".join([*LINES[:AT], line, *LINES[AT + 1 :]])


STEP = json.loads(LINES[AT])["step"]
NESTED = b'{"type":"step","x":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n"
DAMAGE = {
    "cut in a line": (b"".join(LINES[:AT]) + LINES[AT][:50], "it was cut)"),
    "cut between lines": (b"".join(LINES[:AT]), f"the file ends after step {STEP - 1}, without a verdict"),
    "cut before the verdict": (b"".join(LINES[:-1]), "without a verdict"),
    "a garbage line": (replaced(b"garbage\n"), "not a line of JSON: Expecting value"),
    "an empty line": (replaced(b"\n"), "an empty line"),
    "bytes that are no text": (replaced(b'{"type":"\xff\xfe"}\n'), "not UTF-8 text"),
    "NaN as a number": (replaced(b'{"type":"step","step":NaN}\n'), "NaN must be written as text"),
    "a list": (replaced(b"[1]\n"), "found an array of 1, need an object"),
    "nested far too deep": (replaced(NESTED), "nested far deeper"),
    "far too long": (replaced(b'{"type":"' + b"x" * MAX_LINE_BYTES + b'"}\n'), "longer than 8,388,608 bytes"),
    "a number of 5,000 digits": (
        replaced(b'{"type":"step","step":' + b"9" * 5000 + b"}\n"),
        "not a line of JSON",
    ),
    "a line missing": (b"".join([*LINES[:AT], *LINES[AT + 1 :]]), f"step {STEP + 1} after step {STEP - 1}"),
    "lines swapped": (
        b"".join([*LINES[:AT], LINES[AT + 1], LINES[AT]]),
        f"step {STEP + 1} after step {STEP - 1}",
    ),
    "a line twice": (b"".join([*LINES[:AT], LINES[AT - 1]]), f"step {STEP - 1} after step {STEP - 1}"),
    "a second header": (replaced(LINES[0]), "a second header"),
    "an early keyframe": (replaced(LINES[1]), f"keyframe of step 0 after step {STEP - 1}"),
    "an unknown kind of line": (edited(lambda s: s.update(type="stop")), "'stop'; did you mean 'step'?"),
    "an unknown action": (edited(lambda s: s["action"].update(type="Froward")), "did you mean 'Forward'?"),
    "a text for a number": (
        edited(lambda s: s["events"][1].update(slot="1")),
        "events[1].slot: found '1', need a whole",
    ),
    "a field missing": (edited(lambda s: s["events"][1].pop("slot")), "events[1]: lacks 'slot'"),
    "a field unknown": (edited(lambda s: s.update(stepp=1)), "unknown field 'stepp'; did you mean 'step'?"),
    "a slot that does not exist": (
        edited(lambda s: s["changes"]["slots"][0].update(index=99)),
        "changes.slots[0]: changes slot 99, which does not exist",
    ),
    "a request that does not exist": (
        edited(lambda s: s["changes"]["requests"][0].update(id="x")),
        "changes request 'x', which does not exist",
    ),
    "a new node half described": (
        edited(lambda s: s["changes"].update(node_ids=[1, 2, 9], nodes=[{"id": 9}])),
        "changes.nodes[0]: lacks 'parent'",
    ),
    "a node that never was": (
        edited(lambda s: s["changes"].update(node_ids=[1, 2, 9])),
        "names node 9, which does not exist",
    ),
    "a node twice": (edited(lambda s: s["changes"].update(node_ids=[1, 2, 2])), "names node 2 twice"),
    "a list cut beyond its end": (
        edited(lambda s: s["changes"].update(lru={"at": 5, "cut": 9, "put": []})),
        "takes 9 entries out at 5 of a list of 2",
    ),
    "parents in a circle": (
        edited(lambda s: s["changes"].update(nodes=[{"id": 1, "parent": 2}])),
        "node 1 has parent 2, which does not come before it",
    ),
    "a state in no slot": (
        edited(lambda s: s["changes"].update(nodes=[{"id": 1, "state": 77}])),
        "node 1 has slot 77 as its state",
    ),
    "an event in no slot": (
        edited(lambda s: s["events"][1].update(slot=-1)),
        "Decoded names slot -1, which does not exist",
    ),
    "a track point of 0": (edited(lambda s: s["changes"].update(track_point=0)), "track_point is 0"),
    "a pool that grows": (
        edited(lambda s: s["changes"].update(slot_ids=list(range(11)))),
        "11 slots, 12 before",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_trace_is_read_up_to_the_damage_which_is_named_with_its_line(
    case: str, tmp_path: Path
) -> None:
    raw, message = DAMAGE[case]
    count, said = read(raw, tmp_path / "t.jsonl")
    line = len(LINES) if case == "cut before the verdict" else AT + 1
    assert count == (47 if case == "cut before the verdict" else STEP - 1)
    assert said.startswith(f"{line}: ")
    assert message in said
    assert len(said) < 250


def test_an_undamaged_one_is_read_to_its_end(tmp_path: Path) -> None:
    assert read(RAW, tmp_path / "t.jsonl") == (47, "")
    assert read(edited(lambda _: None), tmp_path / "t.jsonl") == (47, ""), "spaces in the JSON do not matter"
    assert read(RAW.removesuffix(b"\n"), tmp_path / "t.jsonl") == (47, ""), "nor does a last newline"


def test_a_line_after_the_verdict_is_damage(tmp_path: Path) -> None:
    count, said = read(RAW + LINES[3], tmp_path / "t.jsonl")
    assert (count, said) == (47, f"{len(LINES) + 1}: a line after the verdict")


def test_a_keyframe_that_is_not_the_sum_of_the_changes_is_damage(tmp_path: Path) -> None:
    lines = lines_of(recorded("multiturn", 8))
    keyframe = next(line for line in lines if line["type"] == "keyframe" and line["step"] == 16)
    keyframe["snapshot"]["kv_free"] += 1
    count, said = read(joined(lines), tmp_path / "t.jsonl")
    assert count == 16
    assert "keyframe of step 16 is not what the changes before it add up to" in said


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is empty, need a trace"),
        (b"hello\n", "not a trace: not a line of JSON"),
        (b"\x7fELF\x02\x01", "not a trace: not UTF-8 text|not a trace: not a line of JSON"),
        (b'{"type":"verdict"}\n', "need a header of format"),
        (b'{"type":"header","format":"other","version":1}\n', "need a header of format"),
        (
            LINES[0].replace(b'"version":1', b'"version":2'),
            "written by 'test'; this replaylife reads versions up to 1: upgrade it",
        ),
        (LINES[0].replace(b'"version":1', b'"version":0'), "need version 1"),
        (LINES[0].replace(b'"keyframe_every":64', b'"keyframe_every":0'), "keyframe_every of at least 1"),
        (LINES[0].replace(b'"scenario"', b'"scenarios"'), "did you mean 'scenario'"),
    ],
)
def test_what_is_no_trace_is_refused(raw: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(raw)
    with pytest.raises(TraceError, match=message) as caught:
        TraceReader(path)
    assert not isinstance(caught.value, TraceDamaged)


@pytest.mark.parametrize("place", ["missing.jsonl", "."])
def test_a_file_that_cannot_be_opened_is_refused(place: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"cannot be read: No such file|is a directory"):
        TraceReader(tmp_path / place)


# -- jumps ---------------------------------------------------------------------------------------------


def test_every_step_can_be_jumped_to_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(recorded("multiturn", 8))
    with TraceReader(path) as reader:
        every = {t.step: t for t in reader}
        assert len(every) == 47
        for step in sorted(every, key=lambda step: step * 29 % 48):
            reader.seek(step)
            found = next(iter(reader))
            assert found == replace(every[step], before=replace(every[step].before, measurements=()))
        reader.seek(40)
        assert [t.step for t in reader] == list(range(40, 48)), "and read on from there to the end"


@pytest.mark.parametrize("step", [0, -3, 48, 10_000])
def test_a_step_that_the_trace_does_not_have_cannot_be_jumped_to(step: int, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(RAW)
    with TraceReader(path) as reader, pytest.raises(ValueError, match=f"step {step}: "):
        reader.seek(step)


def test_a_jump_reads_no_further_back_than_its_keyframe(tmp_path: Path) -> None:
    lines = recorded("multiturn", 8).splitlines(keepends=True)
    lines[5] = b"garbage\n"
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(lines))
    with TraceReader(path) as reader:
        reader.seek(40)
        assert next(iter(reader)).step == 40
        with pytest.raises(TraceDamaged, match="not a line of JSON"):
            reader.seek(6)


# -- memory --------------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_length_of_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with TraceWriter(path, HEADER) as trace:
        for t in transitions(20_000):
            trace.step(t)
        trace.finish()
    alive: dict[int, int] = {}
    with TraceReader(path) as reader:
        checker = TransitionChecker(HEADER.capabilities)
        for t in reader:
            assert checker.check(t) == ()
            if t.step in (1_000, 19_999):
                gc.collect()
                views = (Snapshot, SlotView, NodeView, RequestView)
                alive[t.step] = sum(type(thing) in views for thing in gc.get_objects())
        assert reader.verdict is not None
        assert reader.verdict.steps == 20_000
    assert len(alive) == 2
    assert 0 < alive[19_999] <= alive[1_000] + 50
