"""`replaylife replay`: a request log played, counted, and refused with the line that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replaylife.lifecycle.strategies import STRATEGIES

from .command import invoke

SHORT = ("--limit", "4", "--slots", "64")


def test_a_column_for_every_strategy_and_exit_code_0_when_everything_held() -> None:
    every = [word for name in STRATEGIES for word in ("--strategy", name)]
    done = invoke("replay", *SHORT, *every)
    assert done.exit_code == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert list(STRATEGIES) in lines
    assert ["violations", "0", "0", "0", "0"] in lines
    assert max(map(len, done.stdout.splitlines())) <= 80
    unchecked = invoke("replay", *SHORT, "--no-check").stdout.splitlines()[-1]
    assert unchecked.split(maxsplit=1) == ["violations", "not checked"]


def test_json_has_the_point_the_sums_and_no_violation() -> None:
    (told,) = json.loads(invoke("replay", *SHORT, "--format", "json").stdout)
    assert told["point"]["strategy"] == "no_buffer"
    assert told["totals"]["requests"] == 4
    assert told["totals"]["hit"] + told["totals"]["prefilled"] == told["totals"]["prompt"]
    assert told["violations"] == []


def test_a_seeded_fault_ends_in_exit_code_1_and_a_proof() -> None:
    done = invoke("replay", *SHORT, "--fault", "finish-donates-full-length")
    assert done.exit_code == 1
    assert "Contradiction with key-matches-state" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_fault_of_another_strategy_is_told_and_not_blamed_on_the_log() -> None:
    done = invoke("replay", *SHORT, "--strategy", "align", "--fault", "finish-donates-full-length")
    assert done.exit_code == 2
    assert done.stderr.startswith("replaylife: fault 'finish-donates-full-length' replaces a method of")


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


def test_a_log_that_is_no_text_is_told_with_its_line(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"\n\xff\xfe\x00")
    done = invoke("replay", str(log))
    assert done.exit_code == 2
    assert f"{log}:2: no JSON" in done.stderr


def test_a_reply_that_can_never_fit_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"timestamp": 0, "input_length": 5, "output_length": 10000000000, "hash_ids": [1]}\n')
    done = invoke("replay", str(log))
    assert done.exit_code == 2
    assert "line 1: 10,000,000,004 tokens of prompt and reply do not fit even alone" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.jsonl",), "nowhere.jsonl: No such file"),
        (("--fault", "finish-donates-ful-length"), "did you mean"),
        (("--chunk", "100"), "--chunk 100: need at least a block of --page 512"),
        (("--limit", "1", "--kv-tokens", "100"), "prompt and reply do not fit even alone"),
        (("--strategy", "nothing"), "'nothing' is not one of"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(arguments: tuple[str, ...], said: str) -> None:
    done = invoke("replay", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
