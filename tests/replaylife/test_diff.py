"""``replaylife diff``: two traces, side by side from where they part."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from .command import FAULT, invoke
from .recorded import HOSTILE, edited, faulty, record, renamed

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("traces")
    return str(faulty(folder / "faulty.jsonl")), str(record(folder / "clean.jsonl"))


def _partings(left: str, right: str, *options: str) -> list[dict[str, object]]:
    result = invoke("diff", left, right, "--format", "json", *options)
    found = json.loads(result.stdout)
    assert found["same"] == (result.exit_code == 0) == (not found["partings"])
    return list(found["partings"])


def test_a_trace_is_the_same_as_itself(traces: tuple[str, str]) -> None:
    result = invoke("diff", traces[0], traces[0])
    assert (result.exit_code, result.stdout) == (0, "✓ the same, step by step\n")


def test_fault_and_clean_part_where_the_fault_strikes(traces: tuple[str, str]) -> None:
    first = _partings(*traces)[0]
    assert first["step"] == 24
    assert {"fact": "key 30", "left": "state 26, conv 26", "right": None} in first["differences"]  # type: ignore[operator]
    assert {"fact": "key 26", "left": None, "right": "state 26, conv 26"} in first["differences"]  # type: ignore[operator]


@pytest.mark.parametrize("columns", [80, 120])
def test_the_comparison_reads_as_its_snapshot(traces: tuple[str, str], columns: int) -> None:
    result = invoke("diff", *traces, "--steps", "2", columns=columns)
    text = "\n".join(line.rstrip() for line in result.stdout.splitlines()) + "\n"
    text = re.sub(r"\d+ (others|invariants) hold", r"some \1 hold", text)
    stored = SNAPSHOTS / f"diff-{columns}.txt"
    if os.environ.get("REPLAYLIFE_UPDATE_SNAPSHOTS"):
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")
    assert result.exit_code == 1
    assert max(map(len, text.splitlines())) <= columns


def test_the_clock_of_recency_does_not_count(traces: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(Path(traces[1]).read_text(encoding="utf-8"), encoding="utf-8")

    def edit(line: dict[str, object]) -> None:
        for snapshot in (line.get("snapshot"), line.get("changes")):
            if isinstance(snapshot, dict):
                for node in snapshot.get("nodes", ()):
                    if "recency" in node:
                        node["recency"] += 100

    edited(path, edit)
    assert path.read_bytes() != Path(traces[1]).read_bytes()
    assert _partings(traces[1], str(path)) == []


def test_a_trace_that_ends_earlier_parts_there(traces: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_bytes(Path(traces[1]).read_bytes()[:20_000])
    (parting,) = _partings(traces[1], str(path))
    assert 5 < int(str(parting["step"])) < 47
    assert parting["differences"][0]["right"] == "the trace has ended"  # type: ignore[index]
    assert "the trace has ended" in invoke("diff", traces[1], str(path)).stdout


def test_other_tokens_of_the_same_length_are_noticed(traces: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(Path(traces[1]).read_text(encoding="utf-8"), encoding="utf-8")

    def edit(line: dict[str, object]) -> None:
        action = line.get("action")
        if isinstance(action, dict) and action["type"] == "Admit":
            action["tokens"][0] += 1

    first = _partings(traces[1], str(edited(path, edit)))[0]
    assert first["step"] == 1
    assert first["differences"][0]["right"] == "admit turn1 (10 prompt tokens), other tokens"  # type: ignore[index]


def test_different_scenarios_part_at_once(traces: tuple[str, str], tmp_path: Path) -> None:
    other = record(tmp_path / "agents.jsonl", "agents")
    assert _partings(traces[0], str(other))[0]["step"] == 1


def test_what_cannot_be_read_is_named(traces: tuple[str, str]) -> None:
    result = invoke("diff", traces[0], "missing.jsonl")
    assert result.exit_code == 2
    assert "missing.jsonl: cannot be read" in result.output


def test_a_hostile_trace_is_compared_as_text(traces: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "hostile.jsonl"
    path.write_text(Path(traces[0]).read_text(encoding="utf-8"), encoding="utf-8")
    result = invoke("diff", str(renamed(path, "turn1", HOSTILE)), traces[1])
    assert result.exit_code == 1
    assert "\x1b" not in result.output
    assert FAULT in result.stdout
