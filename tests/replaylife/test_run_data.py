"""What ``replaylife run`` writes for programs."""

from __future__ import annotations

from pathlib import Path

from replaylife.cli.report_data import command

from .command import FAULT, FAULTY, SHORT, objects, run


def test_json_has_one_object_per_step_and_a_verdict() -> None:
    result = run("multiturn", "--fault", FAULT, "--format", "json")
    found = objects(result.stdout)
    assert result.exit_code == 1
    assert [entry["step"] for entry in found if entry["type"] == "step"] == list(range(1, 48))
    broken = [
        entry["step"]
        for entry in found
        if any(v["fresh"] for v in entry.get("violations", []) if "fresh" in v)
    ]
    assert broken[0] == 24
    verdict = found[-1]
    assert (verdict["type"], verdict["held"], verdict["exit_code"], verdict["steps"]) == (
        "verdict",
        False,
        1,
        47,
    )
    assert verdict["reproduce"] == ["replaylife", "run", "multiturn", "--backend", "none", "--fault", FAULT]


def test_json_of_a_clean_run_has_no_violations() -> None:
    found = objects(run("multiturn", "--format", "json").stdout)
    assert not any(entry.get("violations") for entry in found)
    assert found[-1]["held"] is True


def test_quiet_json_is_the_verdict_alone() -> None:
    assert [entry["type"] for entry in objects(run("multiturn", "--format", "json", "--quiet").stdout)] == [
        "verdict"
    ]


def test_json_says_why_a_scenario_could_not_be_played(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(SHORT.replace("n: 6", "m: 6"), encoding="utf-8")
    result = run(str(path), "--format", "json")
    (entry,) = objects(result.stdout)
    assert result.exit_code == 2
    assert entry["type"] == "error"
    assert {problem["line"] for problem in entry["problems"]} == {6}


def test_github_points_at_the_scenario_line_and_escapes() -> None:
    result = run("multiturn", "--fault", FAULT, "--format", "github")
    first = result.stdout.splitlines()[0]
    assert result.exit_code == 1
    assert first.startswith("::error file=")
    assert ",line=15,title=key-matches-state (step 24%2C node 3)::found temporal covers 26 tokens" in first
    assert "%0ALet node 3 claim 30 tokens" in first


def test_github_is_silent_about_violations_that_are_expected(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(FAULTY, encoding="utf-8")
    assert "::error" not in run(str(path), "--fault", FAULT, "--format", "github").stdout
    assert "::error" in run(str(path), "--format", "github").stdout


def test_workflow_commands_escape_as_the_runner_unescapes() -> None:
    assert command("error", "50%\na,b:c", file="a,b:c%") == "::error file=a%2Cb%3Ac%25::50%25%0Aa,b:c"
