"""What is written is read again, exactly."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from replaylife.lifecycle.snapshot import Measurement
from replaylife.lifecycle.trace.codec import codec_of
from replaylife.lifecycle.trace.errors import Malformed
from replaylife.lifecycle.trace.lines import Expectation, VerdictLine
from replaylife.lifecycle.trace.reader import RecordedStep, TraceReader
from replaylife.pool import Fold

from ..support import Run
from .support import SHIPPED, lines_of, recorded, steps_of, write


@pytest.mark.parametrize("name", SHIPPED)
def test_every_transition_violation_and_expectation_of_a_scenario_comes_back(
    name: str, tmp_path: Path
) -> None:
    run, path = Run(name), tmp_path / "t.jsonl"
    write(run, path, keyframe_every=7)
    with TraceReader(path) as reader:
        entries = list(reader.entries())
    steps = [entry for entry in entries if isinstance(entry, RecordedStep)]
    assert [step.transition for step in steps] == [replace(p.transition, changed=None) for p in run.played]
    assert [step.violations for step in steps] == [p.fresh for p in run.played]
    assert [step.line for step in steps] == [p.line for p in run.played]
    assert sum(isinstance(entry, Expectation) for entry in entries) == len(run.outcomes) - len(run.played)
    verdict = entries[-1]
    assert isinstance(verdict, VerdictLine)
    assert (verdict.held, verdict.steps) == (run.verdict.held, len(run.played))
    assert len(steps) >= 2


def test_the_library_of_scenarios_was_really_swept() -> None:
    assert len(SHIPPED) >= 50
    played = {step["action"]["type"] for name in SHIPPED for step in steps_of(lines_of(recorded(name)))}
    assert played >= {
        "Admit",
        "Prefill",
        "Forward",
        "Finish",
        "Retract",
        "Abort",
        "EvictStates",
        "Checkpoint",
        "Schedule",
        "Execute",
        "Commit",
    }


def test_measurements_of_real_tensors_come_back(tmp_path: Path) -> None:
    run, path = Run("checkpoint-mid-ring", backend="torch"), tmp_path / "t.jsonl"
    write(run, path)
    with TraceReader(path) as reader:
        read = [t.after.measurements for t in reader]
    assert read == [p.transition.after.measurements for p in run.played]
    assert sum(map(len, read)) >= 20


@pytest.mark.parametrize("error", [math.inf, -math.inf, 1e-300, 0.0, 5.0])
def test_a_number_without_a_word_in_json_survives(error: float) -> None:
    codec = codec_of(Measurement)
    text = json.dumps(codec.encode(Measurement("state", "node 1", "conv", 3, error, 1e-5)), allow_nan=False)
    assert codec.decode(json.loads(text)).error == error


def test_nan_survives_as_text() -> None:
    codec = codec_of(float)
    assert codec.encode(math.nan) == "nan"
    assert math.isnan(codec.decode("nan"))


def test_a_digest_is_text_because_readers_of_json_lose_large_integers() -> None:
    fold = Fold(26, 2**61 - 2)
    assert codec_of(Fold).encode(fold) == [26, "1ffffffffffffffe"]
    assert codec_of(Fold).decode([26, "1ffffffffffffffe"]) == fold


@dataclass(frozen=True, slots=True)
class Overheard:
    """An event that nobody told the codec about."""

    request: str
    folds: tuple[Fold, ...]
    node: int | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """Another."""

    why: str


def test_a_new_event_needs_no_code_in_the_codec() -> None:
    codec = codec_of(Overheard | Missed)
    event = Overheard("a", (Fold(1, 2),), None)
    assert codec.encode(event) == {"type": "Overheard", "request": "a", "folds": [[1, "2"]], "node": None}
    assert codec.decode(codec.encode(event)) == event
    assert codec.decode({"type": "Missed", "why": "x"}) == Missed("x")


def test_a_type_without_a_form_is_a_mistake_of_the_programmer() -> None:
    with pytest.raises(TypeError, match="has no form in a trace"):
        codec_of(complex)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"type": "Overheard", "request": 5, "folds": []}, "request: found 5, need text"),
        ({"type": "Overheard", "request": "a", "folds": [[1, "2"], 3]}, "folds[1]: found 3, need [length,"),
        ({"type": "Overheard", "request": "a"}, "lacks 'folds'"),
        ({"type": "Overheard", "request": "a", "folds": [], "nodes": 1}, "'nodes'; did you mean 'node'?"),
        ({"type": "Overheard", "request": "a", "folds": [], "node": True}, "node: found true, need a whole"),
        ({"type": "Overheard", "request": "a", "folds": [], "node": 2**64}, "at most 64 bits"),
        ({"type": "Overherd"}, "type: no type is named 'Overherd'; did you mean 'Overheard'?"),
        ([], "found an array of 0, need an object"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(value: object, message: str) -> None:
    with pytest.raises(Malformed) as caught:
        codec_of(Overheard | Missed).decode(value)
    assert message in str(caught.value)


def test_prompt_tokens_are_written_once_and_a_key_never_is() -> None:
    prompt = next(line for line in lines_of(recorded("multiturn")) if line["type"] == "step")["action"][
        "tokens"
    ]
    text = recorded("multiturn").decode()
    spelled = ",".join(map(str, prompt))
    assert text.count(f"[{spelled}]") == 1, "turn 1's own admission"
    assert text.count(f"[{spelled},") == 1, "turn 2 brings the whole conversation in again"


def test_a_decode_step_is_one_short_line() -> None:
    lengths = [len(line) for line in recorded("multiturn").splitlines() if b'"Forward"' in line]
    assert len(lengths) == 40
    assert max(lengths) < 1000
    assert sum(lengths) / len(lengths) < 700
