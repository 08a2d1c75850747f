"""``replaylife explain TRACE``: what went wrong, as a short proof."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command import invoke
from .recorded import HOSTILE, faulty, record, renamed


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return faulty(tmp_path_factory.mktemp("trace") / "t.jsonl")


def test_each_root_is_a_short_proof_that_ends_in_the_contradiction(trace: Path) -> None:
    result = invoke("explain", str(trace))
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    parts = [
        "key-matches-state, step 24, node 3: temporal covers 26 tokens, expected the key's 30 tokens",
        "Let node 3 claim 30 tokens",
        "planted by steps 20..23, decode turn1: tokens 27..30 of turn1 in the ring of slot 1",
        "carried by step 24, finish turn1",
        "bites at step 26, prefill turn2",
        "Contradiction with key-matches-state",
        "of the same root: node 4 key-matches-state (step 26)",
        "reproduce: replaylife run multiturn --backend none --fault finish-donates-full-length",
        f"see it: replaylife view {trace} --at 24",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_the_command_that_it_ends_with_shows_the_step(trace: Path) -> None:
    last = invoke("explain", str(trace)).stdout.splitlines()[-1]
    words = last.partition("replaylife ")[2].split()
    assert "step 24 of 47" in invoke(*words).stdout


def test_as_json_every_root_has_its_links(trace: Path) -> None:
    found = json.loads(invoke("explain", str(trace), "--format", "json").stdout)
    (root,) = found["roots"]
    assert (root["step"], root["planted"]["first"], root["planted"]["last"]) == (24, 20, 23)
    assert [link["first"] for link in root["bites"]] == [26]
    assert found["reproduce"][:3] == ["replaylife", "run", "multiturn"]


def test_of_a_clean_trace_there_is_nothing_to_explain(tmp_path: Path) -> None:
    result = invoke("explain", str(record(tmp_path / "t.jsonl")))
    assert result.exit_code == 0
    assert "nothing was violated in 47 steps" in result.stdout


def test_a_cut_trace_is_explained_up_to_the_cut(trace: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_bytes(trace.read_bytes()[: len(trace.read_bytes()) * 2 // 3])
    result = invoke("explain", str(path))
    assert "planted by" in result.stdout
    assert "it was cut" in " ".join(result.stdout.split())


def test_ids_still_come_first_and_a_missing_trace_is_named() -> None:
    assert "scenario" in invoke("explain", "multiturn").stdout
    result = invoke("explain", "missing.jsonl")
    assert result.exit_code == 2
    assert "missing.jsonl: cannot be read" in result.output


def test_a_hostile_trace_is_explained_as_text(trace: Path, tmp_path: Path) -> None:
    path = tmp_path / "hostile.jsonl"
    path.write_bytes(trace.read_bytes())
    result = invoke("explain", str(renamed(path, "turn1", HOSTILE)))
    assert result.exit_code == 0
    assert "\x1b" not in result.output
