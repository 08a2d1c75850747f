"""What ``replaylife run`` prints for people, and what it exits with."""

from __future__ import annotations

from pathlib import Path

import pytest

from .command import FAULT, FAULTY, SHORT, invoke, run


def _write(folder: Path, text: str, name: str = "s.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_shipped_scenario_is_found_by_name_and_holds() -> None:
    result = run("multiturn")
    assert result.exit_code == 0
    assert "✓ multiturn: everything held" in result.stdout
    assert result.stderr == ""


def test_a_fault_exits_with_1_and_says_how_to_see_it_again() -> None:
    result = run("multiturn", "--fault", FAULT)
    assert result.exit_code == 1
    again = f"reproduce: replaylife run multiturn --backend none --fault {FAULT}\n"
    assert result.stdout.count(again) == 2, "below the first violation, and below the verdict"
    assert "Then tokens 27..30 are in no state" in result.stdout


def test_the_command_that_is_printed_repeats_the_run() -> None:
    first = run("multiturn", "--fault", FAULT, "--gate", "kda", "--state-dtype", "bf16")
    command = next(line for line in first.stdout.splitlines() if "reproduce: " in line)
    words = command.split("reproduce: replaylife ")[1].split()
    again = invoke(*words)
    assert again.exit_code == 1
    assert again.stdout == first.stdout
    assert "kda, state bf16" in again.stdout


def test_uneventful_decodes_are_one_line_and_eventful_ones_are_not() -> None:
    text = run("multiturn").stdout
    assert "  4..18  decode turn1 ×15  committed 11..25  ring " in text  # noqa: RUF001
    assert "     19  decode turn1\n         folded 16 records of slot 1: temporal now covers 26" in text
    assert " 20..23  decode turn1 ×4  committed 27..30  ring " in text  # noqa: RUF001


def test_a_violation_that_the_scenario_expects_does_not_fail_the_run(tmp_path: Path) -> None:
    path = _write(tmp_path, FAULTY)
    assert run(path, "--fault", FAULT).exit_code == 0
    assert run(path).exit_code == 1, "without the fault the expectation of a violation fails"


def test_a_failed_expectation_names_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path, SHORT.replace("state: 8", "state: 9"), "wrong.yaml")
    monkeypatch.chdir(tmp_path)
    result = run("wrong.yaml")
    assert result.exit_code == 1
    assert "wrong.yaml:8: tree: found key 4 state 4, key 8 state 8" in result.stdout


def test_a_refused_action_is_a_failed_expectation_and_ends_the_run(tmp_path: Path) -> None:
    result = run(_write(tmp_path, SHORT.replace("kv_tokens: 64", "kv_tokens: 5")))
    assert result.exit_code == 1
    assert "refused: decode a" in result.stdout


def test_quiet_keeps_the_proof_and_the_verdict_only() -> None:
    result = run("multiturn", "--fault", FAULT, "--quiet")
    assert result.exit_code == 1
    assert "step 24 breaks key-matches-state" in result.stdout
    assert "prefill turn1" not in result.stdout
    assert "prefill turn1" in run("multiturn", "--fault", FAULT).stdout


def test_several_scenarios_end_in_a_summary_and_the_worst_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _write(tmp_path, SHORT.replace("state: 8", "state: 9"))
    result = run("multiturn", "s.yaml", "multiturn-fold", "--quiet")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-3:] == [
        "✓ multiturn       everything held",
        "✗ s.yaml          1 expectation failed",
        "✓ multiturn-fold  everything held",
    ]
    assert run("multiturn", "multiturn-fold", "--quiet").exit_code == 0


def test_one_bad_scenario_does_not_keep_the_others_from_running() -> None:
    result = run("nonesuch", "multiturn", "--quiet")
    assert result.exit_code == 2
    assert "✓ multiturn: everything held" in result.stdout
    assert "✗ nonesuch   could not be played" in result.stdout


def test_a_title_cannot_command_the_terminal(tmp_path: Path) -> None:
    path = _write(
        tmp_path, SHORT.replace("title: One", r'title: "\e[2JOne').replace("request\n", 'request"\n', 1)
    )
    result = run(path)
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "[2JOne short request" in result.stdout


@pytest.mark.parametrize("scenario", ["multiturn-fold", "checkpoint-mid-ring"])
def test_shipped_scenarios_without_a_fault_hold(scenario: str) -> None:
    assert run(scenario, "--quiet").exit_code == 0


def test_without_replayssm_there_is_no_ring_to_show(tmp_path: Path) -> None:
    off = SHORT.replace("ring_length: 4", "replayssm: off").replace(
        "{key: 8, state: 8}", "{key: 10, state: 10}"
    )
    result = run(_write(tmp_path, off))
    assert result.exit_code == 0
    assert "ring" not in result.stdout.replace("everything", "").replace("interrupted", "")
    assert "ReplaySSM off" in result.stdout
