"""What each strategy caches of the two-turn conversation, and its slots and grids on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.events import Allocated, Freed, Published, StepCommitted
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.profiles import PROFILES
from replaylife.lifecycle.scenario.errors import ScenarioError
from replaylife.lifecycle.scenario.loader import load_scenario

from .support import Run, shipped

TURN_TWO_HITS = {
    "multiturn": 26,
    "extra-buffer-multiturn": 24,
    "extra-buffer-lazy-multiturn": 24,
    "align-multiturn": 28,
    "overlap-multiturn": 26,
}
CLEAN = [
    *TURN_TWO_HITS,
    "branching",
    "overlap-past-a-fold",
    "mixed-batch",
    "graph-mode",
    "rejected-admission",
]


@pytest.mark.parametrize("name", CLEAN)
def test_it_is_clean_on_real_tensors(name: str, gate: str, device: str) -> None:
    run = Run(name, backend="torch", device=device, gate=gate)
    assert run.verdict.held, (run.verdict.failures, run.verdict.violations[:2])
    assert len(list(run.measurements("logits"))) > 10


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("replayssm", [True, False])
def test_tensors_and_ledger_agree_in_a_witness_run(name: str, replayssm: bool, device: str) -> None:
    run = Run(name, backend="torch", device=device, witness=True, cache={"replayssm": replayssm})
    assert [m for m in run.measurements("witness") if m.exceeded] == []
    assert len(list(run.measurements("witness"))) > 50


@pytest.mark.parametrize(("name", "cached"), TURN_TWO_HITS.items())
def test_turn_two_hits_what_turn_one_left(name: str, cached: int) -> None:
    run = Run(name)
    request = run.after("admit turn2 (39 prompt tokens)").request("turn2")
    assert request is not None
    assert request.cached == cached


@pytest.mark.parametrize(
    ("name", "per_request"), [("extra-buffer-multiturn", 3), ("extra-buffer-lazy-multiturn", 2)]
)
def test_track_slots_are_taken_at_admission_and_all_but_the_donated_go_back(
    name: str, per_request: int
) -> None:
    run = Run(name)
    admitted = run.played[0].transition
    assert len([event for event in admitted.events if isinstance(event, Allocated)]) == per_request
    finish = next(p.transition for p in run.played if str(p.transition.action) == "finish turn1")
    assert [event.key_len for event in finish.events if isinstance(event, Published)] == [24]
    held = len(finish.before.request("turn1").track_slots) + 1  # type: ignore[union-attr]
    assert len([event for event in finish.events if isinstance(event, Freed)]) == held - 1


def test_checkpoint_depths_are_counted_from_token_0() -> None:
    run = Run("extra-buffer-multiturn")
    lengths = [node.key.length for node in run.engine.snapshot().nodes if node.state is not None]
    assert lengths
    assert all(length % 4 == 0 for length in lengths)


def test_a_step_in_flight_at_finish_is_run_and_discarded() -> None:
    run = Run("overlap-multiturn")
    commits = [e for p in run.played for e in p.transition.events if isinstance(e, StepCommitted)]
    assert [event.discarded for event in commits if event.discarded] == [("turn1",)]
    assert run.finished("turn1").committed == 30
    assert len(run.finished("turn1").reply) == 21


def test_schedule_of_a_step_passes_the_commit_of_the_one_before() -> None:
    run = Run("overlap-multiturn")
    ahead = [p for p in run.played if len(p.transition.after.in_flight) == 2]
    assert len(ahead) > 20
    lengths = ahead[0].transition.after.request("turn1")
    assert lengths is not None
    assert lengths.scheduled > lengths.executed == lengths.committed


def test_a_fault_of_another_strategy_is_refused_not_ignored() -> None:
    scenario = shipped("align-multiturn")
    config = EngineConfig(scenario.model, scenario.cache)
    with pytest.raises(
        ValueError, match="replaces a method of NoBuffer, which strategy 'align' does not use"
    ):
        EngineFactory(config, ("finish-donates-full-length",)).build()
    EngineFactory(config, ("live-state-as-block",)).build()


@pytest.mark.parametrize(
    ("profile", "refused", "accepted"),
    [
        ("sglang-0.5.23", "strategy: extra_buffer", "strategy: extra_buffer, replayssm: off"),
        ("sglang-0.5.23", "strategy: align, page: 4", "strategy: no_buffer"),
        (
            "sglang-0.5.23",
            "strategy: no_buffer, overlap: on",
            "strategy: extra_buffer, replayssm: off, overlap: on",
        ),
        ("vllm-0.33.0", "strategy: no_buffer", "strategy: align, page: 4"),
    ],
)
def test_a_profile_refuses_what_its_release_refuses(
    profile: str, refused: str, accepted: str, tmp_path: Path
) -> None:
    def write(cache: str) -> Path:
        path = tmp_path / "p.yaml"
        path.write_text(
            f"title: t\ncache: {{profile: {profile}, {cache}}}\n"
            "steps:\n  - admit: {request: a, prompt: 4}\n"
        )
        return path

    with pytest.raises(ScenarioError, match=f"profile {profile} refuses this"):
        load_scenario(write(refused))
    load_scenario(write(accepted))
    assert PROFILES[profile].source.startswith("https://")


def test_no_buffer_has_no_grid(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("title: t\ncache: {page: 4}\nsteps:\n  - admit: {request: a, prompt: 4}\n")
    with pytest.raises(ScenarioError, match=r"p.yaml:2: .*no_buffer donates slots at any length"):
        load_scenario(path)
