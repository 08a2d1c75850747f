"""`replaylife replay`: a request log played, counted, and refused with the line that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command import invoke

SHORT = ("--limit", "6", "--slots", "64")


def test_a_column_for_every_strategy_and_exit_code_0_when_everything_held() -> None:
    done = invoke("replay", *SHORT, "--strategy", "no_buffer", "--strategy", "align", columns=200)
    assert done.exit_code == 0
    header = next(line for line in done.stdout.splitlines() if line.startswith("tokens unless"))
    assert header.split()[-2:] == ["no_buffer", "align"]
    assert "violations                                    0                  0" in done.stdout


def test_json_has_the_point_the_sums_and_no_violation() -> None:
    (told,) = json.loads(invoke("replay", *SHORT, "--format", "json").stdout)
    assert told["point"]["strategy"] == "no_buffer"
    assert told["totals"]["requests"] == 6
    assert told["totals"]["hit"] + told["totals"]["prefilled"] == told["totals"]["prompt"]
    assert told["violations"] == []


def test_a_seeded_fault_ends_in_exit_code_1_and_a_proof() -> None:
    done = invoke("replay", *SHORT, "--fault", "finish-donates-full-length")
    assert done.exit_code == 1
    assert "Contradiction with key-matches-state" in done.stdout


def test_with_replayssm_off_nothing_folds() -> None:
    (told,) = json.loads(invoke("replay", *SHORT, "--ring", "0", "--format", "json").stdout)
    assert told["totals"]["folds"] == 0


def test_bad_lines_are_told_with_file_and_line(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [1]}\nfoo\n[]\n')
    done = invoke("replay", str(log))
    assert done.exit_code == 2
    assert f"{log}:2: no JSON" in done.stderr
    assert f"{log}:3: found list" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.jsonl",), "nowhere.jsonl: No such file"),
        (("--fault", "finish-donates-ful-length"), "did you mean"),
        (("--chunk", "100"), "--chunk 100: need at least a block of --page 512"),
        (("--limit", "1", "--kv-tokens", "100"), "prompt tokens do not fit even alone"),
        (("--strategy", "nothing"), "'nothing' is not one of"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(arguments: tuple[str, ...], said: str) -> None:
    done = invoke("replay", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
