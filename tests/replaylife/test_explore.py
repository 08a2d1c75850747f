"""``replaylife explore``: reports, files, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command import invoke

TINY = """title: tiny
cache: {slots: 4, kv_tokens: 32, ring_length: 2}
conversations:
  - {name: a, turns: [{prompt: 3, decode: 1}]}
actions: [admit, prefill, decode, finish]
"""
FAULT = ("--fault", "finish-donates-full-length")


def _scope(folder: Path, text: str = TINY) -> str:
    path = folder / "tiny.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_clean_scope_is_exhausted_and_the_code_is_0(tmp_path: Path) -> None:
    done = invoke("explore", _scope(tmp_path))
    assert done.exit_code == 0
    assert "states      5 distinct, 5 transitions, depth 3" in done.stdout
    assert "actions     admit 1 decode 1 finish 2 prefill 1" in done.stdout


def test_a_violation_is_told_with_its_way_and_the_code_is_1(tmp_path: Path) -> None:
    done = invoke("explore", _scope(tmp_path), *FAULT)
    assert done.exit_code == 1
    assert "the shortest way there, 4 actions:" in done.stdout
    assert "Contradiction with key-matches-state" in done.stdout


def test_what_was_found_is_written_played_and_traced(tmp_path: Path) -> None:
    out, trace = tmp_path / "found.yaml", tmp_path / "found.jsonl"
    done = invoke("explore", _scope(tmp_path), *FAULT, "--out", str(out), "--trace", str(trace))
    assert done.exit_code == 1
    assert f"reproduce: replaylife run {out}" in done.stdout
    assert invoke("run", str(out), "--backend", "none", "--quiet").exit_code == 1
    checked = invoke("check", str(trace), "--format", "json", "--quiet")
    assert json.loads(checked.stdout.splitlines()[-1])["recorded"] == "the same" or checked.exit_code == 1


def test_the_report_for_programs_has_the_counts_and_the_proof(tmp_path: Path) -> None:
    done = invoke("explore", _scope(tmp_path), *FAULT, "--format", "json")
    report = json.loads(done.stdout)
    assert (report["type"], report["ending"], report["exit_code"]) == ("exploration", "violation", 1)
    assert report["violations"][0]["moves"] == ["admit a", "prefill a (3 tokens)", "decode a", "finish a"]
    assert report["violations"][0]["proof"][-1].startswith("Contradiction")


def test_a_spent_budget_is_code_3(tmp_path: Path) -> None:
    assert invoke("explore", _scope(tmp_path), "--max-states", "3").exit_code == 3


def test_a_violation_within_the_budget_is_code_1(tmp_path: Path) -> None:
    assert invoke("explore", _scope(tmp_path), *FAULT, "--max-states", "1000").exit_code == 1


def test_a_situation_that_never_comes_about_is_code_1(tmp_path: Path) -> None:
    done = invoke("explore", _scope(tmp_path, TINY + "reaches: [hit]\n"))
    assert done.exit_code == 1
    assert "never       hit" in done.stdout


def test_a_bad_scope_is_code_2_with_its_line(tmp_path: Path) -> None:
    done = invoke("explore", _scope(tmp_path, TINY + "dept: 1\n"))
    assert done.exit_code == 2
    assert "tiny.yaml:6: unknown key 'dept'; did you mean 'depth'?" in done.stderr


def test_unknown_names_are_code_2_with_the_nearest(tmp_path: Path) -> None:
    scope = invoke("explore", "align-smal")
    assert (scope.exit_code, "did you mean 'align-small'?" in scope.stderr) == (2, True)
    fault = invoke("explore", _scope(tmp_path), "--fault", "free-twic")
    assert (fault.exit_code, "did you mean 'free-twice'?" in fault.stderr) == (2, True)


def test_a_fault_of_another_strategy_is_code_2(tmp_path: Path) -> None:
    done = invoke("explore", _scope(tmp_path), "--fault", "stamp-from-next-step")
    assert done.exit_code == 2
    assert "choose a strategy that does" in done.stderr


def test_files_are_not_replaced_unless_forced(tmp_path: Path) -> None:
    out = tmp_path / "kept.yaml"
    out.write_text("kept", encoding="utf-8")
    refused = invoke("explore", _scope(tmp_path), *FAULT, "--out", str(out))
    assert (refused.exit_code, out.read_text(encoding="utf-8")) == (2, "kept")
    assert invoke("explore", _scope(tmp_path), *FAULT, "--out", str(out), "--force").exit_code == 1
    assert out.read_text(encoding="utf-8").startswith("title: key-matches-state")


def test_a_file_that_cannot_be_written_is_told_before_the_search(tmp_path: Path) -> None:
    for name in ("--out", "--trace", "--graph"):
        done = invoke("explore", _scope(tmp_path), name, str(tmp_path / "none" / "x.dot"))
        assert done.exit_code == 2
    assert invoke("explore", _scope(tmp_path), "--graph", str(tmp_path / "x.png")).exit_code == 2


def test_the_graph_is_written(tmp_path: Path) -> None:
    path = tmp_path / "g.dot"
    assert invoke("explore", _scope(tmp_path), "--graph", str(path)).exit_code == 0
    assert path.read_text(encoding="utf-8").count("->") == 5


def test_without_a_scope_the_shipped_ones_are_listed() -> None:
    done = invoke("explore")
    assert done.exit_code == 0
    assert "no-buffer-small" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--engine", "sgl"], "there is no such engine; did you mean 'sglang'?"),
        (["--engine", "sglang", *FAULT], "a fault is of the reference engine's code, not of --engine"),
        (["--ignore", "components-agree"], "--ignore goes with --engine"),
        (["--engine", "sglang", "--graph", "a.dot"], "--graph is for the reference engine"),
        (["--engine", "sglang", "--ignore", "agree"], "--ignore agree: there is no such invariant"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = invoke("explore", _scope(tmp_path), *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_scope_that_the_engine_cannot_express_is_refused_with_the_reason() -> None:
    done = invoke("explore", "extra-buffer-small", "--engine", "sglang")
    assert done.exit_code == 2
    assert "cannot express this scope: overlap" in done.stderr
