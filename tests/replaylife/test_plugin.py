"""The pytest plugin, as a user's project has it: each test is a pytest run in a folder of its own."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from .command import FAULT, SHORT, python

pytest_plugins = ["pytester"]

WRONG = SHORT.replace("key: 8, state: 8", "key: 9, state: 8")
BROKEN = SHORT.replace("steps:", f"faults: [{FAULT}]\nsteps:")
OTHERS = {
    "pipeline.yml": "steps:\n  - script: make\n",
    "workflow.yaml": "title: x\njobs:\n  a:\n    steps:\n      - run: make\n",
    "broken.yaml": "a: [\n",
    "tabs.yml": "\ttitle:\n\tsteps:\n",
    "binary.yaml": "\x00\x01\x02",
}


def outcomes(pytester: pytest.Pytester, *args: str, **expected: int) -> pytest.RunResult:
    """Run pytest in this process; compare how many passed, failed and so on."""
    result = pytester.runpytest_inprocess(*args)
    result.assert_outcomes(**expected)
    return result


def apart(pytester: pytest.Pytester, *args: str, **expected: int) -> pytest.RunResult:
    """The same in a process of its own: where torch is imported, or where imports are looked at."""
    result = pytester.runpytest_subprocess(*args)
    result.assert_outcomes(**expected)
    return result


def write(pytester: pytest.Pytester, **files: str) -> None:
    for name, text in files.items():
        (pytester.path / f"{name}.yaml").write_text(text, encoding="utf-8")


def text_of(result: pytest.RunResult) -> str:
    return result.stdout.str()


def test_a_scenario_that_holds_passes_and_one_that_does_not_fails(pytester: pytest.Pytester) -> None:
    write(pytester, right=SHORT, wrong=WRONG)
    result = outcomes(pytester, passed=1, failed=1)
    assert "wrong.yaml:8: tree: found key 4 state 4, key 8 state 8, expected" in text_of(result)
    assert "reproduce: replaylife run wrong.yaml --backend none" in text_of(result)


def test_the_failure_is_the_proof_and_not_a_traceback(pytester: pytest.Pytester) -> None:
    write(pytester, broken=BROKEN)
    text = text_of(outcomes(pytester, failed=1))
    assert "step 9 (finish a, broken.yaml:8) breaks key-matches-state" in text
    assert "temporal covers 8 tokens, expected the key's 10 tokens" in text
    assert "Contradiction with key-matches-state" in text
    for word in ("Traceback", "runtest", ".py:"):
        assert word not in text


def test_what_is_printed_repeats_the_failure(pytester: pytest.Pytester) -> None:
    write(pytester, broken=BROKEN)
    line = next(ln for ln in text_of(outcomes(pytester, failed=1)).splitlines() if "reproduce: " in ln)
    again = python("-m", *line.split("reproduce: ")[1].split(), cwd=pytester.path)
    assert again.returncode == 1
    assert "step 9 breaks key-matches-state" in again.stdout


def test_a_bad_file_is_a_collection_error_with_every_line(pytester: pytest.Pytester) -> None:
    write(pytester, bad=SHORT.replace("slots", "slosts").replace("n: 6", "n: -1"), right=SHORT)
    result = outcomes(pytester, errors=1)
    assert "bad.yaml:2: unknown key 'slosts'; did you mean 'slots'?" in text_of(result)
    assert "bad.yaml:6: " in text_of(result)
    assert "Traceback" not in text_of(result)
    assert ".py:" not in text_of(result)


@pytest.mark.parametrize("name", OTHERS)
def test_other_yaml_files_are_left_alone(name: str, pytester: pytest.Pytester) -> None:
    (pytester.path / name).write_text(OTHERS[name], encoding="utf-8")
    write(pytester, right=SHORT)
    outcomes(pytester, passed=1)


def test_a_large_file_is_left_alone(pytester: pytest.Pytester) -> None:
    write(pytester, right=SHORT, large=SHORT + "# padding\n" * 100_000)
    outcomes(pytester, passed=1)


def test_in_a_configured_folder_every_yaml_file_is_a_scenario(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nreplaylife_paths = cases\n")
    (pytester.path / "cases").mkdir()
    (pytester.path / "cases" / "pipeline.yml").write_text(OTHERS["pipeline.yml"], encoding="utf-8")
    write(pytester, right=SHORT)
    result = outcomes(pytester, errors=1)
    assert "cases/pipeline.yml:1: title: missing" in text_of(result)
    assert "right.yaml" not in text_of(result), "outside the folder a file is collected only if it is named"
    outcomes(pytester, "right.yaml", passed=1)


def test_choosing_by_name_and_the_last_failed_work(pytester: pytest.Pytester) -> None:
    write(pytester, right=SHORT, wrong=WRONG)
    outcomes(pytester, "-k", "right", passed=1, deselected=1)
    outcomes(pytester, "wrong.yaml::wrong", failed=1)
    pytester.runpytest_inprocess()
    again = pytester.runpytest_inprocess("--lf")
    again.assert_outcomes(failed=1)
    assert "rerun previous 1 failure" in text_of(again)


def test_the_junit_report_has_the_explanation(pytester: pytest.Pytester) -> None:
    write(pytester, right=SHORT, broken=BROKEN)
    outcomes(pytester, "--junitxml=report.xml", passed=1, failed=1)
    cases = {
        case.get("name"): case for case in ElementTree.parse(pytester.path / "report.xml").iter("testcase")
    }
    assert cases["right"].find("failure") is None
    failure = cases["broken"].find("failure")
    assert failure is not None
    assert "Contradiction with key-matches-state" in (failure.text or "")
    steps = {entry.get("name"): entry.get("value") for entry in cases["right"].iter("property")}
    assert steps == {
        "replaylife_engine": "reference",
        "replaylife_backend": "none",
        "replaylife_steps": "9",
    }


def test_scenarios_run_in_parallel(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    write(pytester, one=SHORT, two=SHORT, wrong=WRONG)
    result = outcomes(pytester, "-n", "2", passed=2, failed=1)
    assert "wrong.yaml:8: tree: found" in text_of(result)


@pytest.mark.parametrize("how", ["option", "ini"])
def test_the_backend_is_an_option_and_an_ini_value(how: str, pytester: pytest.Pytester) -> None:
    write(pytester, wrong=WRONG)
    if how == "ini":
        pytester.makeini("[pytest]\nreplaylife_backend = torch\nreplaylife_device = cpu\n")
    options = ["--replaylife-backend=torch", "--replaylife-device=cpu"] if how == "option" else []
    assert "engine: torch on cpu; gdn" in text_of(apart(pytester, *options, failed=1))
    assert "engine: ledger only" in text_of(outcomes(pytester, "--replaylife-backend=none", failed=1))


def test_an_unknown_backend_is_refused_in_both(pytester: pytest.Pytester) -> None:
    write(pytester, right=SHORT)
    assert pytester.runpytest_inprocess("--replaylife-backend=numpy").ret == pytest.ExitCode.USAGE_ERROR
    pytester.makeini("[pytest]\nreplaylife_backend = numpy\n")
    result = pytester.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "replaylife_backend: found 'numpy', need one of none, torch, triton" in result.stderr.str()


def test_a_device_that_is_not_there_fails_the_test_with_the_reason(pytester: pytest.Pytester) -> None:
    write(pytester, right=SHORT)
    options = ("--replaylife-backend=torch", "--replaylife-device=cuda:99")
    text = text_of(apart(pytester, *options, failed=1))
    assert "cannot be played: --device cuda:99 cannot be used" in text


def test_the_plugin_can_be_turned_off(pytester: pytest.Pytester) -> None:
    write(pytester, right=SHORT)
    assert pytester.runpytest_subprocess("-p", "no:replaylife").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_user_s_own_test_plays_scenarios_and_reads_what_they_came_to(pytester: pytest.Pytester) -> None:
    write(pytester, mine=SHORT)
    pytester.makepyfile(
        f"""
        import pytest

        def test_clean(replaylife):
            result = replaylife.play("mine.yaml")
            assert result.held
            assert (result.violations, result.failures) == ((), ())
            assert str(result.steps[-1].action) == "finish a"
            assert len(result.snapshot.nodes) == 2
            assert replaylife.check(result.steps).violations == []

        def test_faulty(replaylife):
            result = replaylife.play("mine.yaml", faults=["{FAULT}"])
            assert not result.held
            step, violation = result.violations[0]
            assert (step, violation.invariant) == (9, "key-matches-state")
            assert result.failures[0].startswith("mine.yaml:8: tree: ")
            assert replaylife.check(result.steps).violations

        def test_on_tensors(replaylife):
            assert replaylife.play("checkpoint-mid-ring", backend="torch", device="cpu").held

        def test_unknown(replaylife):
            with pytest.raises(ValueError, match="did you mean 'multiturn'"):
                replaylife.play("multitrun")
        """
    )
    apart(pytester, "-k", "test_", passed=4, deselected=1)


def test_a_failed_assertion_shows_the_explanation_and_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        def test_it(replaylife):
            replaylife.play("multiturn").assert_held()
            replaylife.play("multiturn", faults=["{FAULT}"]).assert_held()
        """
    )
    text = text_of(outcomes(pytester, failed=1))
    assert "Contradiction with key-matches-state" in text
    assert f'>       replaylife.play("multiturn", faults=["{FAULT}"]).assert_held()' in text
    assert "playing.py" not in text


LOADED = """
import sys

def test_nothing_heavy():
    assert "replaylife.pytest_plugin" in sys.modules
    heavy = {"torch", "triton", "pydantic", "ruamel", "rich", "click", "numpy", "hypothesis", "networkx"}
    assert not heavy & {name.partition(".")[0] for name in sys.modules}
"""


def test_loading_the_plugin_imports_nothing_heavy(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(LOADED)
    for name, text in OTHERS.items():
        (pytester.path / name).write_text(text, encoding="utf-8")
    apart(pytester, passed=1)


def test_a_scenario_without_tensors_does_not_import_torch(pytester: pytest.Pytester) -> None:
    write(pytester, a=SHORT)
    pytester.makepyfile(
        test_z="""
        import sys

        def test_z():
            assert "pydantic" in sys.modules
            assert "torch" not in sys.modules
        """
    )
    apart(pytester, passed=2)


def test_every_shipped_scenario_is_a_test_of_this_project() -> None:
    root = Path(__file__).parents[2]
    listed = python("-m", "pytest", "scenarios", "--collect-only", "-q", cwd=root).stdout
    names = {path.stem for path in (root / "scenarios").glob("*.yaml")}
    assert len(names) >= 30
    assert {line.partition("::")[2] for line in listed.splitlines() if "::" in line} == names
