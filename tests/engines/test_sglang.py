"""SGLang's own cache, driven: skipped, and said so, where it is not installed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch
from click.testing import CliRunner

from replaylife.cli import main
from replaylife.conformance import compare, portray
from replaylife.engines import EngineUnavailable, adapter_of
from replaylife.engines.sglang import adapter
from replaylife.engines.sglang.engine import SglangEngine
from replaylife.known_differences import explanation
from replaylife.lifecycle import actions
from replaylife.lifecycle.config import CacheConfig, EngineConfig
from replaylife.lifecycle.protocol import ActionRefused, CannotExpress
from replaylife.playing import Result, play

from .support import SCENARIOS, all_shipped, needs_sglang, shipped

pytestmark = [needs_sglang, pytest.mark.filterwarnings("ignore")]  # theirs are not ours to mend
CORES = ("sglang", "sglang-rust")
DEVICES = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


def _broken(result: Result) -> set[str]:
    return {found.violation.invariant for found in result.violations}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("engine", CORES)
def test_a_donated_window_is_ahead_of_key_and_temporal(engine: str, device: str) -> None:
    result = play("multiturn", engine=engine, device=device)
    step, violation = result.violations[0]
    assert (step, violation.invariant) == (24, "components-agree")
    assert (violation.found, violation.expected) == ("conv at 30", "temporal's position 26")
    assert _broken(result) == {"components-agree", "live-state-complete"}


@pytest.mark.parametrize("engine", CORES)
@pytest.mark.parametrize(
    "scenario", ["replayssm-off", "tombstone-reuse", "finish-at-fold", "retract-and-resume", "branching"]
)
def test_what_is_right_is_judged_right(scenario: str, engine: str) -> None:
    result = play(scenario, engine=engine)
    assert result.violations == ()
    assert result.held, result.explanation


@pytest.mark.parametrize("engine", CORES)
def test_a_mixed_forward_skips_the_records_of_its_decode_rows(engine: str) -> None:
    result = play("mixed-step-reads-ring", engine=engine)
    first = next(found for found in result.violations if found.violation.invariant == "live-state-complete")
    assert isinstance(result.steps[first.step - 1].action, actions.Forward)
    assert "cursor-advances-once" in _broken(result)
    assert "key-matches-state" in _broken(result)


@pytest.mark.parametrize("device", DEVICES)
def test_a_scenario_takes_the_same_steps_wherever_its_tensors_are(device: str) -> None:
    for scenario in ("extra-buffer-multiturn", "mixed-step-reads-ring", "eviction-pressure", "kda-multiturn"):
        here, there = (play(scenario, engine="sglang", device=where) for where in ("cpu", device))
        assert here.run.config.device == "cpu"
        assert there.run.config.device == device
        steps = [[(step.events, step.after) for step in result.steps] for result in (here, there)]
        assert steps[0] == steps[1]


def test_a_rust_core_that_misreads_tensors_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def misread(*_: object) -> None:
        raise ValueError("insert value must be an int64 tensor, got ComplexDouble")

    assert adapter.rust_trouble() is None
    monkeypatch.setattr(adapter, "rust_trouble", adapter.rust_trouble.__wrapped__)
    monkeypatch.setattr(SglangEngine, "_perform", misread)
    with pytest.raises(EngineUnavailable, match=r"does not work with torch .* asks for torch.*ComplexDouble"):
        _ = adapter.RUST.title
    assert adapter.PYTHON.title.endswith("python tree core")


@pytest.mark.parametrize("engine", CORES)
def test_extra_buffer_counts_its_grid_from_the_chunk(engine: str) -> None:
    assert _broken(play("extra-buffer-multiturn", engine=engine)) == {"checkpoint-on-grid"}


def test_every_difference_of_every_shipped_scenario_is_explained() -> None:
    compared = [compare(shipped(name), engine) for name in all_shipped() for engine in CORES]
    played = [one for one in compared if one.skipped is None]
    assert len(played) >= 2 * 17
    for one in played:
        assert one.theirs.states
        unexplained = [difference for difference in one.differences if explanation(one, difference) is None]
        assert unexplained == [], one.scenario


def test_both_tree_cores_do_the_same() -> None:
    compared = 0
    for name in all_shipped():
        scenario = shipped(name)
        config = EngineConfig(scenario.model, scenario.cache)
        if scenario.faults:
            continue
        try:
            python, rust = (portray(scenario, adapter_of(core).build(config)) for core in CORES)
        except CannotExpress:
            continue
        assert (python.cached, python.states, python.evicted) == (rust.cached, rust.states, rust.evicted)
        compared += 1
    assert compared >= 17


def test_the_command_compares_and_says_what_it_skips() -> None:
    done = CliRunner().invoke(main, ["conformance", "multiturn", "align-multiturn", "--format", "json"])
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == 0, done.output
    assert [(r["scenario"], r["engine"], r["skipped"] is None) for r in records] == [
        ("multiturn", "sglang", True),
        ("multiturn", "sglang-rust", True),
        ("align-multiturn", "sglang", False),
        ("align-multiturn", "sglang-rust", False),
    ]
    assert {d["explained_by"] for d in records[0]["differences"]} == {"conv-window-ahead"}


def test_the_table_has_a_row_for_each_engine() -> None:
    done = CliRunner().invoke(main, ["conformance", "multiturn"])
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("multiturn")]
    assert [row[:2] for row in rows] == [["multiturn", "sglang"], ["multiturn", "sglang-rust"]]
    assert "6 differences, 0 unexplained" in done.stdout


def test_a_trace_of_it_can_be_checked(tmp_path) -> None:  # type: ignore[no-untyped-def]
    trace = str(tmp_path / "replayssm-off.jsonl")
    runner = CliRunner()
    assert (
        runner.invoke(main, ["run", "replayssm-off", "--engine", "sglang", "--trace", trace]).exit_code == 0
    )
    checked = runner.invoke(main, ["check", trace])
    assert checked.exit_code == 0, checked.output
    assert "on sglang" in checked.output


SMALL = EngineConfig(cache=CacheConfig(slots=6, kv_tokens=32, ring_length=4))


def test_an_admission_without_room_is_rejected_and_nothing_is_held() -> None:
    engine = adapter_of("sglang").build(SMALL)
    before = engine.snapshot()
    (event,) = engine.apply(actions.Admit("a", tuple(range(40))))
    assert "40 key-value tokens needed, 32 to be had" in str(event)
    assert engine.snapshot() == before


@pytest.mark.parametrize(
    "action",
    [actions.Prefill("a", 1), actions.Finish("a"), actions.EvictStates(0), actions.Probe(())],
    ids=str,
)
def test_what_is_not_enabled_is_refused_and_changes_nothing(action: actions.Action) -> None:
    engine = adapter_of("sglang").build(SMALL)
    before = engine.snapshot()
    with pytest.raises(ActionRefused):
        engine.apply(action)
    assert engine.snapshot() == before


@pytest.mark.parametrize("action", [actions.Flush("a"), actions.Schedule(("a",)), actions.Commit()], ids=str)
def test_what_it_does_not_have_cannot_be_expressed(action: actions.Action) -> None:
    with pytest.raises(CannotExpress):
        adapter_of("sglang").build(SMALL).apply(action)


def test_a_failed_assertion_of_theirs_is_a_breakdown() -> None:
    engine = adapter_of("sglang").build(EngineConfig(cache=CacheConfig(slots=2, kv_tokens=32)))
    engine.apply(actions.Admit("a", (1, 2, 3)))
    with pytest.raises(RuntimeError, match="SGLang raised AssertionError: Can not alloc mamba cache"):
        engine.apply(actions.Prefill("a", 3))


def test_two_engines_with_different_settings_live_side_by_side() -> None:
    configs = [
        EngineConfig(cache=CacheConfig(slots=8, kv_tokens=64, ring_length=8, track_interval=interval))
        for interval in (6, 256)
    ]
    engines = [adapter_of("sglang").build(config) for config in configs]
    for engine in engines:
        engine.apply(actions.Admit("a", (1, 2, 3, 4)))
        engine.apply(actions.Prefill("a", 4))
    for _ in range(2):
        for engine in engines:
            engine.apply(actions.Forward(("a",)))
    cursors = [
        engine.snapshot().slots[engine.snapshot().requests[0].slot or 0].write_pos for engine in engines
    ]
    assert cursors == [0, 2]


def test_the_pytest_plugin_plays_on_it_and_skips_what_it_cannot_express() -> None:
    files = [
        str(SCENARIOS / f"{name}.yaml") for name in ("replayssm-off", "align-multiturn", "unlock-missing")
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    command += ["--replaylife-engine", "sglang"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=SCENARIOS.parent
    )
    assert "1 passed, 2 skipped" in done.stdout, done.stdout
    assert "sglang cannot express this: strategy align" in done.stdout
    assert "sglang cannot express this: it seeds unlock-missing" in done.stdout
