"""``replaylife run --trace`` and ``replaylife check``, as a user meets them."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from replaylife.cli import check as check_command
from replaylife.cli import reading
from replaylife.lifecycle.trace.writer import TraceWriter

from .command import FAULT, SHORT, invoke, objects, python, run, spawn


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def record(name: str = "multiturn", trace: str = "t.jsonl", *options: str) -> Path:
    result = run(name, "--trace", trace, "--quiet", *options)
    assert result.exit_code in (0, 1), result.output
    return Path(trace)


# -- run --trace ---------------------------------------------------------------------------------------


def test_a_run_is_recorded_and_shown_as_without() -> None:
    plain, recorded = run("multiturn"), run("multiturn", "--trace", "t.jsonl")
    assert recorded.stdout == plain.stdout
    lines = objects(Path("t.jsonl").read_text(encoding="utf-8"))
    assert [line["type"] for line in lines[:2]] == ["header", "keyframe"]
    assert [line["type"] for line in lines].count("step") == 47
    assert lines[-1] == {
        "type": "verdict", "held": True, "ending": "complete", "steps": 47, "violations": 0, "unexpected": 0,
        "failures": 0, "caught_at": None,
    }  # fmt: skip


def test_the_header_says_what_ran_and_how_to_repeat_it() -> None:
    record("multiturn", "t.jsonl", "--gate", "kda", "--fault", FAULT)
    header = json.loads(Path("t.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert header["scenario"] == "multiturn"
    assert header["config"]["model"]["gate"] == "kda"
    assert (header["seed"], header["faults"]) == (53, [FAULT])
    assert header["command"][:3] == ["replaylife", "run", "multiturn"]
    assert len(header["digest"]) == 16
    assert header["tool"].startswith("replaylife ")


def test_a_trace_that_is_there_is_not_replaced_unless_forced() -> None:
    path = record()
    before = path.read_bytes()
    refused = run("multiturn-fold", "--trace", "t.jsonl")
    assert refused.exit_code == 2
    assert refused.stderr.strip() == (
        "replaylife: --trace t.jsonl: exists and is not empty; choose another name, or --force"
    )
    assert path.read_bytes() == before
    assert run("multiturn-fold", "--trace", "t.jsonl", "--force", "--quiet").exit_code == 0
    assert path.read_bytes() != before


def test_a_trace_is_not_replaced_by_a_run_that_cannot_begin() -> None:
    before = record().read_bytes()
    Path("bad.yaml").write_text(SHORT.replace("slots", "slosts"), encoding="utf-8")
    assert run("bad.yaml", "--trace", "t.jsonl", "--force").exit_code == 2
    assert Path("t.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("multiturn", "multiturn-fold", "--trace", "t.jsonl"), "2 scenarios are given; run them one by one"),
        (("multiturn", "--force"), "give --trace FILE too"),
        (("multiturn", "--trace", "."), "--trace .: is a directory, need a file"),
        (
            ("multiturn", "--trace", "no/such/t.jsonl"),
            "t.jsonl: cannot be written: No such file or directory",
        ),
    ],
)
def test_a_trace_that_cannot_be_written_stops_before_the_run(args: tuple[str, ...], message: str) -> None:
    result = run(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_disk_that_fills_up_ends_the_run_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(TraceWriter, "step", full)
    result = run("multiturn", "--trace", "t.jsonl")
    assert result.exit_code == 2
    assert "--trace t.jsonl: cannot be written: No space left on device" in result.stderr


def test_an_interrupted_run_is_recorded_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    step = TraceWriter.step

    def interrupted(self: TraceWriter, transition: Any, *args: Any, **kwargs: Any) -> None:
        step(self, transition, *args, **kwargs)
        if transition.step == 9:
            raise KeyboardInterrupt

    monkeypatch.setattr(TraceWriter, "step", interrupted)
    assert run("multiturn", "--trace", "t.jsonl").exit_code == 130
    assert objects(Path("t.jsonl").read_text(encoding="utf-8"))[-1]["ending"] == "interrupted"
    result = invoke("check", "t.jsonl")
    assert result.exit_code == 0
    assert "the run was interrupted" in result.stdout


def test_a_killed_run_leaves_what_it_did() -> None:
    long = SHORT.replace("n: 6", "n: 9000").replace("kv_tokens: 64", "kv_tokens: 9999")
    Path("long.yaml").write_text(long, encoding="utf-8")
    args = ["-m", "replaylife", "run", "long.yaml", "--backend", "none", "--quiet", "--trace", "t.jsonl"]
    process = subprocess.Popen([sys.executable, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (
        Path("t.jsonl").exists() and Path("t.jsonl").stat().st_size > 20_000
    ):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    result = invoke("check", "t.jsonl", "--format", "json")
    verdict = json.loads(result.stdout)
    assert result.exit_code == 2
    assert verdict["steps"] > 20
    assert verdict["violations"] == verdict["differences"] == 0
    assert verdict["damage"]["message"]


# -- check ---------------------------------------------------------------------------------------------


def test_a_clean_trace_holds() -> None:
    record()
    result = invoke("check", "t.jsonl")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "✓ t.jsonl: everything held" in result.stdout
    judged = re.search(r"47 steps: (\d+) invariants, and whether each step follows", result.stdout)
    assert judged is not None
    assert int(judged[1]) >= 22
    assert "5 of 5 expectations held, as recorded" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_violation_is_explained_and_exits_with_1() -> None:
    record("multiturn", "t.jsonl", "--fault", FAULT)
    result = invoke("check", "t.jsonl")
    assert result.exit_code == 1
    assert "✗ step 24 breaks key-matches-state" in result.stdout
    assert "Let node 3 claim 30 tokens; its state is slot 1." in result.stdout
    assert "✗ t.jsonl: " in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_violation_that_the_scenario_set_out_to_show_is_said_to_be() -> None:
    assert run(FAULT, "--trace", "t.jsonl").exit_code == 0
    result = invoke("check", "t.jsonl")
    assert result.exit_code == 1
    assert "the scenario set out to show what breaks in step 24" in result.stdout


def test_a_tampered_trace_is_caught_with_step_and_field() -> None:
    text = record().read_text(encoding="utf-8")
    Path("t.jsonl").write_text(text.replace('"executed":12,', '"executed":13,', 1), encoding="utf-8")
    result = invoke("check", "t.jsonl")
    assert result.exit_code == 1
    assert "request turn1: executed 13, expected 12" in result.stdout


def test_a_damaged_trace_is_judged_up_to_the_damage() -> None:
    lines = record().read_bytes().splitlines(keepends=True)
    Path("t.jsonl").write_bytes(b"".join(lines[:12]) + lines[12][:100])
    result = invoke("check", "t.jsonl")
    assert result.exit_code == 2
    assert result.stderr.startswith("t.jsonl:13: not a line of JSON")
    assert "the file ends here, without a newline: it was cut" in result.stderr
    assert "nothing wrong in 9 steps, then damaged" in result.stdout


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (None, "replaylife: t.jsonl: cannot be read: No such file or directory"),
        (b"", "replaylife: t.jsonl: is empty, need a trace (replaylife run SCENARIO --trace FILE)"),
        (b"title: x\n", "t.jsonl:1: not a trace: not a line of JSON: Expecting value"),
        (b'{"type":"header","format":"replaylife-trace","version":9,"tool":"replaylife 7.0"}\n',
         "t.jsonl:1: format version 9, written by 'replaylife 7.0'; this replaylife reads versions up to 1: "
         "upgrade it"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_at_all_is_refused(raw: bytes | None, message: str) -> None:
    if raw is not None:
        Path("t.jsonl").write_bytes(raw)
    result = invoke("check", "t.jsonl")
    assert (result.exit_code, result.stdout, result.stderr.strip()) == (2, "", message)


def test_several_traces_end_with_a_line_each_and_the_worst_code() -> None:
    record("multiturn", "good.jsonl")
    record("multiturn", "bad.jsonl", "--fault", FAULT)
    result = invoke("check", "--quiet", "good.jsonl", "bad.jsonl")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "✓ good.jsonl  everything held",
        "✗ bad.jsonl   2 invariants violated, 3 expectations failed",
    ]
    assert invoke("check", "--quiet", "good.jsonl", "bad.jsonl", "none.jsonl").exit_code == 2
    assert invoke("check", "--quiet", "good.jsonl").stdout == "✓ good.jsonl  everything held\n"


def test_json_has_a_line_for_each_finding_and_a_verdict() -> None:
    record("multiturn", "t.jsonl", "--fault", FAULT)
    found = objects(invoke("check", "--format", "json", "t.jsonl").stdout)
    told = Counter(entry["type"] for entry in found)
    assert told == {"violation": found[-1]["violations"], "failure": found[-1]["failures"], "verdict": 1}
    assert told["violation"] >= 3
    assert (found[0]["step"], found[0]["invariant"], found[0]["subject"]) == (
        24,
        "key-matches-state",
        "node 3",
    )
    assert (found[-1]["type"], found[-1]["exit_code"], found[-1]["held"]) == ("verdict", 1, False)
    assert len(objects(invoke("check", "--format", "json", "--quiet", "t.jsonl").stdout)) == 1
    (error,) = objects(invoke("check", "--format", "json", "none.jsonl").stdout)
    assert (error["type"], error["exit_code"]) == ("error", 2)


def test_github_annotates_the_lines_of_the_trace() -> None:
    record("multiturn", "t.jsonl", "--fault", FAULT)
    lines = invoke("check", "--format", "github", "t.jsonl").stdout.splitlines()
    assert lines[0].startswith("::error file=t.jsonl,line=")
    assert "title=key-matches-state (step 24%2C node 3)::" in lines[0]
    assert lines[-1].startswith("t.jsonl: ")
    Path("cut.jsonl").write_bytes(Path("t.jsonl").read_bytes()[:5000])
    cut = invoke("check", "--format", "github", "cut.jsonl").stdout
    assert "title=damaged trace::" in cut


def test_what_a_trace_says_cannot_steer_the_terminal() -> None:
    text = record().read_text(encoding="utf-8")
    evil = text.replace('"scenario":"multiturn"', '"scenario":"\\u001b[2Jmultiturn"').replace(
        "turn1", "\\u001b]0;x"
    )
    Path("t.jsonl").write_text(evil.replace('"executed":12,', '"executed":13,', 1), encoding="utf-8")
    for form in ("text", "json", "github"):
        result = invoke("check", "t.jsonl", "--format", form)
        assert result.exit_code == 1
        assert "\x1b" not in result.output, form


def test_a_large_trace_gets_a_bar_on_a_terminal_and_none_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    record()
    monkeypatch.setattr(reading, "LARGE", 1000)
    assert invoke("check", "t.jsonl").stderr == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = invoke("check", "t.jsonl")
    assert shown.exit_code == 0
    assert "kB" in shown.stderr
    monkeypatch.setattr(reading, "LARGE", 10**9)
    assert invoke("check", "t.jsonl").stderr == ""


def test_an_interrupted_check_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    record()

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(check_command, "_judge", interrupted)
    assert invoke("check", "t.jsonl").exit_code == 130


# -- cost ----------------------------------------------------------------------------------------------


def test_a_trace_of_47_steps_is_checked_in_well_under_a_second() -> None:
    record()
    began = time.monotonic()
    assert invoke("check", "t.jsonl").exit_code == 0
    assert time.monotonic() - began < 0.5
    assert spawn("check", "t.jsonl").returncode == 0


@pytest.mark.parametrize("args", [["check", "t.jsonl"], ["schema"], ["schema", "trace"]])
def test_neither_torch_nor_triton_is_imported(args: list[str]) -> None:
    record()
    code = f"import sys\nfrom replaylife.cli import main\ntry: main({args!r})\nexcept SystemExit: pass\n"
    done = python("-c", f"{code}print(*sys.modules, file=sys.stderr)")
    modules = {name.partition(".")[0] for name in done.stderr.split()}
    assert "replaylife" in modules
    assert modules.isdisjoint({"torch", "triton"})
    assert ("pydantic" in modules) == (args == ["schema"])
