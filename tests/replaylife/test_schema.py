"""The JSON Schemas: complete enough for an editor, and true of real files."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import replaylife.scenarios
from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.invariants import INVARIANTS
from replaylife.lifecycle.scenario.schema import ScenarioFile
from replaylife.lifecycle.strategies import STRATEGIES

from .command import invoke, objects, run
from .json_schema import mistakes

SCENARIOS = sorted(Path(next(iter(replaylife.scenarios.__path__))).glob("*.yaml"))


def schema(*kind: str) -> Any:
    result = invoke("schema", *kind)
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


SCENARIO, TRACE = schema("scenario"), schema("trace")


def document(path: Path) -> Any:
    return json.loads(json.dumps(YAML(typ="safe").load(path)))


def test_scenario_is_the_default() -> None:
    assert schema() == SCENARIO


def test_the_shipped_file_is_what_the_command_prints() -> None:
    shipped = SCENARIOS[0].with_name("scenario.schema.json").read_text(encoding="utf-8")
    again = "replaylife schema > scenarios/scenario.schema.json"
    assert shipped == invoke("schema").stdout, again


def test_an_unknown_kind_is_refused() -> None:
    result = invoke("schema", "traces")
    assert result.exit_code == 2
    assert "'scenario', 'trace'" in result.stderr


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_shipped_scenario_satisfies_it(path: Path) -> None:
    assert list(mistakes(document(path), SCENARIO, SCENARIO)) == []


def test_the_shipped_scenarios_were_really_there() -> None:
    assert len(SCENARIOS) >= 30


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(titel="x"),
        lambda d: d.pop("steps"),
        lambda d: d["cache"].update(slots=1),
        lambda d: d["cache"].update(replayssm="of"),
        lambda d: d.update(faults=["finish-donates"]),
        lambda d: d["steps"].append({}),
        lambda d: d["steps"].append({"abort": {"request": "a"}, "fold": {"request": "a"}}),
        lambda d: d["steps"].append({"abort": None}),
        lambda d: d["steps"].append({"evict": {"states": 1, "kv_tokens": 1}}),
        lambda d: d["steps"].append({"expect": {"violations": [{"invariant": "ring-owed"}]}}),
    ],
)
def test_what_the_loader_would_refuse_an_editor_marks(change: Any) -> None:
    wrong = document(SCENARIOS[0].parent / "multiturn.yaml")
    assert list(mistakes(wrong, SCENARIO, SCENARIO)) == []
    change(wrong)
    assert list(mistakes(wrong, SCENARIO, SCENARIO)) != []


def test_names_are_offered_for_completion() -> None:
    properties, classes = SCENARIO["properties"], SCENARIO["$defs"]
    assert properties["faults"]["items"]["enum"] == sorted(FAULTS)
    assert classes["ViolationExpectation"]["properties"]["invariant"]["enum"] == sorted(INVARIANTS)
    assert classes["CacheSection"]["properties"]["strategy"]["enum"] == sorted(STRATEGIES)
    assert classes["CacheSection"]["properties"]["replayssm"]["enum"] == [True, False, "on", "off"]


def test_every_class_and_field_is_described() -> None:
    classes = {"ScenarioFile": SCENARIO, **SCENARIO["$defs"]}
    fields = [(name, field, d) for name, c in classes.items() for field, d in c["properties"].items()]
    assert len(classes) >= 15
    assert len(fields) >= 60
    assert [name for name, c in classes.items() if not c["description"]] == []
    assert [(name, field) for name, field, d in fields if not d["description"]] == []
    assert "``" not in json.dumps(SCENARIO)


def test_it_has_the_classes_of_the_language_and_no_others() -> None:
    assert SCENARIO["$defs"].keys() == ScenarioFile.model_json_schema()["$defs"].keys()


# -- traces --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_line_of_a_recorded_scenario_satisfies_the_trace_schema(path: Path, tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    run(path.stem, "--trace", str(trace), "--quiet")
    lines = objects(trace.read_text(encoding="utf-8"))
    assert len(lines) >= 5
    for number, line in enumerate(lines, start=1):
        assert list(mistakes(line, TRACE, TRACE)) == [], number


def test_a_line_with_real_measurements_satisfies_it_too(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    invoke("run", "checkpoint-mid-ring", "--backend", "torch", "--trace", str(trace), "--quiet")
    lines = objects(trace.read_text(encoding="utf-8"))
    assert sum(len(line.get("measurements", ())) for line in lines) > 20
    assert [list(mistakes(line, TRACE, TRACE)) for line in lines] == [[]] * len(lines)


def test_a_line_that_the_reader_would_refuse_breaks_it(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    run("multiturn", "--trace", str(trace), "--quiet")
    step = next(line for line in objects(trace.read_text(encoding="utf-8")) if line["type"] == "step")
    changes = (
        lambda s: s.pop("action"),
        lambda s: s["action"].update(type="Admitt"),
        lambda s: s["action"].update(tokens=["a"]),
        lambda s: s["changes"].update(slotz=[]),
        lambda s: s["changes"]["slots"][0].pop("index"),
        lambda s: s["changes"]["slots"][0].update(temporal=[1]),
        lambda s: s.update(type="stop"),
    )
    for place, change in enumerate(changes):
        wrong = deepcopy(step)
        change(wrong)
        assert list(mistakes(wrong, TRACE, TRACE)) != [], place


def test_no_definition_is_missing() -> None:
    for whole in (SCENARIO, TRACE):
        named = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(whole)))
        assert named == set(whole["$defs"]) - {"ScenarioFile"}
        assert len(named) >= 15
