"""A trace's verdict is derived again, and must be the one it carries."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from replaylife.lifecycle.trace.checker import from_tensors
from replaylife.lifecycle.trace.reader import TraceReader

from ..support import Run, shipped
from .support import SHIPPED, joined, judged, lines_of, recorded, steps_of, write

FAULTY = [name for name in SHIPPED if shipped(name).faults]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_verdict_of_a_scenario_is_derived_again_without_a_difference(name: str, tmp_path: Path) -> None:
    judgement, run = judged(recorded(name), tmp_path), Run(name)
    assert judgement.differences == []
    assert judgement.damage is None
    told = {(step, v.invariant, v.subject) for step, v in run.verdict.violations}
    derived = {(f.step, f.violation.invariant, f.violation.subject) for f in judgement.violations}
    assert {entry for entry in derived if entry[1] != "step-follows"} == told
    assert judgement.exit_code == (1 if derived else 0)


def test_faulty_scenarios_were_among_them() -> None:
    assert len(FAULTY) >= 19
    assert sum(bool(Run(name).verdict.violations) for name in FAULTY) >= 18


@pytest.mark.parametrize("fault", ["finish-donates-full-length", "ring-stores-v"])
def test_numeric_verdicts_are_those_of_the_recorded_measurements(fault: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(Run(fault, backend="torch"), path)
    judgement = judged(path.read_bytes(), tmp_path)
    assert judgement.differences == []
    assert any(from_tensors(f.violation) for f in judgement.violations)
    assert judgement.measured > 20


def _edit(name: str, edit: Any) -> bytes:
    lines = lines_of(recorded(name))
    edit(lines)
    return joined(lines)


def test_a_violation_that_the_trace_keeps_quiet_about_is_disputed(tmp_path: Path) -> None:
    def edit(lines: list[Any]) -> None:
        for step in steps_of(lines):
            step.pop("violations", None)
        lines[-1].update(violations=0, unexpected=0, held=True)

    judgement = judged(_edit("finish-donates-full-length", edit), tmp_path)
    assert "step 24: key-matches-state of node 3 is broken, and the trace does not say so" in {
        d.message for d in judgement.differences
    }


def test_a_violation_that_the_snapshots_do_not_show_is_disputed(tmp_path: Path) -> None:
    def edit(lines: list[Any]) -> None:
        made_up = {"invariant": "ring-owned", "subject": "slot 1", "found": "x", "expected": "y", "proof": []}
        list(steps_of(lines))[4]["violations"] = [made_up]
        lines[-1].update(violations=1, unexpected=1, held=False)

    judgement = judged(_edit("multiturn", edit), tmp_path)
    (difference,) = judgement.differences
    assert (
        "ring-owned of slot 1 is recorded as broken, and the snapshots do not show it" in difference.message
    )
    assert judgement.exit_code == 1


def test_other_numbers_for_the_same_violation_are_disputed(tmp_path: Path) -> None:
    def edit(lines: list[Any]) -> None:
        step = next(step for step in steps_of(lines) if step.get("violations"))
        step["violations"][0]["found"] = "temporal covers 29 tokens"

    messages = [d.message for d in judged(_edit("finish-donates-full-length", edit), tmp_path).differences]
    assert len(messages) == 1
    assert "recorded temporal covers 29 tokens" in messages[0]
    assert "the snapshots show temporal covers 26 tokens" in messages[0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": 46}, "the verdict counts 46 steps, the lines before it have 47"),
        ({"violations": 2}, "the verdict counts 2 violations, the lines before it have 0"),
        ({"failures": 1}, "the verdict counts 1 failures, the lines before it have 0"),
        ({"held": False}, "the verdict is not held, with 0 unexpected violations and 0 failures"),
    ],
)
def test_a_verdict_line_that_miscounts_is_disputed(
    fields: dict[str, Any], message: str, tmp_path: Path
) -> None:
    judgement = judged(_edit("multiturn", lambda lines: lines[-1].update(fields)), tmp_path)
    assert message in [d.message for d in judgement.differences]
    assert judgement.exit_code == 1


def test_a_failed_expectation_is_reported_as_recorded(tmp_path: Path) -> None:
    def edit(lines: list[Any]) -> None:
        expectation = next(line for line in lines if line["type"] == "expectation")
        expectation.update(held=False, message="cursor: found 1, expected 0")
        lines[-1].update(failures=1, held=False)

    judgement = judged(_edit("multiturn", edit), tmp_path)
    assert [failed.message for failed in judgement.failures] == ["cursor: found 1, expected 0"]
    assert (judgement.num_differences, judgement.exit_code) == (0, 1)


@pytest.mark.parametrize(("name", "code"), [("multiturn", 2), ("finish-donates-full-length", 1)])
def test_a_damaged_trace_exits_with_2_unless_what_was_read_is_violated(
    name: str, code: int, tmp_path: Path
) -> None:
    judgement = judged(recorded(name)[:-40], tmp_path)
    assert judgement.steps == 47
    assert judgement.damage is not None
    assert re.search(r":\d+: ", str(judgement.damage))
    assert judgement.exit_code == code


def test_progress_ends_at_the_size_of_the_file(tmp_path: Path) -> None:
    from replaylife.lifecycle.trace.judge import judge

    path, told = tmp_path / "t.jsonl", []
    path.write_bytes(recorded("multiturn"))
    with TraceReader(path) as reader:
        judge(reader, told.append)
        assert told[-1] == reader.size == len(recorded("multiturn"))
    assert told == sorted(told)
    assert len(told) >= 47


def test_a_trace_of_another_engine_needs_no_configuration(tmp_path: Path) -> None:
    def edit(lines: list[Any]) -> None:
        for optional in ("config", "seed", "faults", "command", "title", "path", "digest"):
            lines[0].pop(optional, None)
        lines[0]["engine"] = "somebody's"

    judgement = judged(_edit("multiturn", edit), tmp_path)
    assert (judgement.header.engine, judgement.header.config, judgement.exit_code) == ("somebody's", None, 0)
    assert json.loads(recorded("multiturn").splitlines()[0])["config"] is not None
