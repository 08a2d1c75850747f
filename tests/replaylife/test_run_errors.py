"""What happens when the command cannot do its work: exit 2, one message on stderr, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result

from replaylife.lifecycle.engine import ReferenceEngine

from .command import SHORT, invoke, run, spawn


def _refused(result: Result, *parts: str) -> None:
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    for part in parts:
        assert part in result.stderr


def test_an_unknown_scenario_names_the_nearest() -> None:
    _refused(run("multitrun"), "'multitrun'; did you mean 'multiturn'?")


def test_an_unknown_fault_names_the_nearest() -> None:
    _refused(run("multiturn", "--fault", "finish-donates"), "did you mean 'finish-donates-full-length'?")


def test_an_unknown_command_names_the_nearest() -> None:
    _refused(invoke("rum", "multiturn"), "did you mean 'run'?")


def test_no_scenario_at_all_is_a_usage_error() -> None:
    _refused(invoke("run"), "SCENARIO")


def test_a_folder_is_no_scenario(tmp_path: Path) -> None:
    _refused(run(str(tmp_path)), "is a directory")


def test_every_mistake_of_a_file_is_listed_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text(SHORT.replace("slots", "slosts").replace("n: 6", "n: -1"), encoding="utf-8")
    result = run("bad.yaml")
    _refused(result, "bad.yaml:2: unknown key 'slosts'; did you mean 'slots'?", "bad.yaml:6: ")
    assert result.stdout == ""


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "noise.yaml"
    path.write_bytes(bytes(range(256)))
    _refused(run(str(path)), "noise.yaml:")


def test_stepping_needs_a_terminal() -> None:
    _refused(run("multiturn", "--step"), "stdin is no terminal")


def test_stepping_is_for_people() -> None:
    _refused(run("multiturn", "--step", "--format", "json"), "--format text")


def test_a_witness_needs_tensors() -> None:
    _refused(run("multiturn", "--witness"), "--backend torch or triton")


def test_a_witness_that_is_too_small_is_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_text(
        SHORT.replace("n: 6", "n: 100").replace("kv_tokens: 64", "kv_tokens: 256"), encoding="utf-8"
    )
    _refused(invoke("run", str(path), "--backend", "torch", "--witness"), "long.yaml:6: a witness run has")


def test_a_device_makes_no_sense_without_tensors() -> None:
    _refused(run("multiturn", "--device", "cpu"), "--device cpu")
    _refused(run("multiturn", "--device", "toaster"), "toaster")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "replaylife.cli.options.find_spec", lambda name: None if name == "triton" else object()
    )
    _refused(invoke("run", "multiturn"), "backend triton needs triton", "--backend none")


def test_an_internal_error_says_where_and_how_to_see_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise TypeError("a defect")

    monkeypatch.setattr(ReferenceEngine, "apply", broken)
    _refused(
        run("multiturn"), "internal error (multiturn, step 1): TypeError: a defect", "REPLAYLIFE_DEBUG=1"
    )
    monkeypatch.setenv("REPLAYLIFE_DEBUG", "1")
    assert isinstance(run("multiturn").exception, TypeError)


def test_an_interrupted_run_tells_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = ReferenceEngine.apply

    def interrupted(self: ReferenceEngine, action: object) -> object:
        if str(action) == "finish turn1":
            raise KeyboardInterrupt
        return apply(self, action)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(ReferenceEngine, "apply", interrupted)
    result = run("multiturn", "multiturn-fold")
    assert result.exit_code == 130
    assert "nothing broken so far (interrupted)" in result.stdout
    assert "20..23  decode turn1" in result.stdout, "what was held back is told"
    assert "multiturn-fold" not in result.stdout.split("interrupted)")[0], "later scenarios are not begun"


@pytest.mark.parametrize("form", ["text", "json", "github"])
def test_a_reader_that_leaves_ends_the_command_without_a_word(form: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    args = [sys.executable, "-m", "replaylife", "run", "multiturn", "--backend", "none", "--format", form]
    done = subprocess.run(args, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_ascii_output_is_understood_everywhere() -> None:
    done = spawn("run", "multiturn", "--backend", "none", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "ring ###############. 1..15/16" in done.stdout


def test_no_color_and_no_terminal_mean_no_escapes() -> None:
    assert "\x1b" not in spawn("run", "multiturn", "--backend", "none").stdout
    forced = spawn("run", "multiturn", "--backend", "none", FORCE_COLOR="1", TERM="xterm-256color").stdout
    assert "\x1b[36m" in forced
    plain = spawn(
        "run", "multiturn", "--backend", "none", FORCE_COLOR="1", TERM="xterm-256color", NO_COLOR="1"
    ).stdout
    assert "\x1b[36m" not in plain
