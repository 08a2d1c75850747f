"""SGLang's own cache led through small scopes: skipped, and said so, where it is not installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from replaylife.cli import main

from .support import needs_sglang

pytestmark = [needs_sglang, pytest.mark.filterwarnings("ignore")]  # theirs are not ours to mend
CORES = ("sglang", "sglang-rust")
KNOWN = ("--ignore", "components-agree", "--ignore", "live-state-complete")
TWO_TURNS = """title: two turns, with a fold and a record pending at finish
cache: {strategy: no_buffer, slots: 5, kv_tokens: 32, ring_length: 2, track_interval: 50, track: fold-only}
conversations:
  - {name: a, turns: [{prompt: 3, decode: 3}, {prompt: 1}]}
actions: [admit, prefill, decode, finish, abort, checkpoint]
"""


@pytest.fixture
def two_turns(tmp_path: Path) -> str:
    path = tmp_path / "two-turns.yaml"
    path.write_text(TWO_TURNS, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("engine", CORES)
def test_the_donated_window_is_found_without_a_scenario(engine: str, two_turns: str, tmp_path: Path) -> None:
    out = tmp_path / "found.yaml"
    arguments = ["explore", two_turns, "--engine", engine, "--format", "json", "--out", str(out)]
    done = CliRunner().invoke(main, arguments)
    report = json.loads(done.stdout)
    assert (done.exit_code, report["ending"]) == (1, "exhausted")
    first = report["broken"][0]
    assert first["moves"] == ["admit a", "prefill a (3 tokens)", *["decode a"] * 3, "finish a"]
    assert [found["invariant"] for found in first["violations"]] == ["components-agree"]
    assert report["lacking"] == {"checkpoint": "checkpoint: it has no such call for a decoding request"}
    again = CliRunner().invoke(main, ["run", str(out), "--engine", engine, "--quiet"])
    assert again.exit_code == 1
    assert "components-agree" in again.stdout


@pytest.mark.parametrize("engine", CORES)
def test_past_what_is_known_every_way_is_gone(engine: str, two_turns: str) -> None:
    done = CliRunner().invoke(main, ["explore", two_turns, "--engine", engine, "--format", "json", *KNOWN])
    report = json.loads(done.stdout)
    assert done.exit_code == 0
    assert report["held"] == report["gone"] == report["ways"] > 10
    assert report["parted"] == {}


def test_a_budget_ends_it_with_what_was_seen(two_turns: str) -> None:
    arguments = ["explore", two_turns, "--engine", "sglang", *KNOWN, "--max-seconds", "0.001"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 3
    assert "played      1 of" in done.stdout
