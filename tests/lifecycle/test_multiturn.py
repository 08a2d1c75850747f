"""The worked example: every number of it."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest

from replaylife.lifecycle.events import StateFolded

from .support import Run


@cache
def on_tensors(backend: str, device: str, gate: str, state_dtype: str = "fp32") -> Run:
    """The example on real tensors: seconds through Triton's interpreter, so that tests share it."""
    return Run("multiturn", backend=backend, device=device, gate=gate, state_dtype=state_dtype)


def test_prefill_leaves_checkpoints_at_both_chunk_ends() -> None:
    run = Run("multiturn")
    after = run.after("prefill turn1 (4 tokens)")
    assert run.tree(after) == [(6, 6), (10, 10)]
    request = after.request("turn1")
    assert request is not None
    assert request.slot is not None
    slot = after.slots[request.slot]
    assert (slot.temporal.length, slot.write_pos, slot.conv.length) == (10, 0, 10)


def test_the_sixteenth_decode_folds_and_twenty_leave_four_pending() -> None:
    run = Run("multiturn")
    turn1 = [played for played in run.played if str(played.transition.action) == "decode turn1"]
    folds = [
        (index, event.records, event.length)
        for index, played in enumerate(turn1, start=1)
        for event in played.transition.events
        if isinstance(event, StateFolded)
    ]
    assert folds == [(16, 16, 26)]
    last = turn1[-1].transition.after
    assert [(slot.write_pos, slot.temporal.length) for slot in last.slots if slot.ring] == [(4, 26)]
    request = last.request("turn1")
    assert request is not None
    assert request.committed == 30


def test_truncation_donates_twenty_six_with_every_component_there() -> None:
    run = Run("multiturn")
    after = run.after("finish turn1")
    assert run.tree(after) == [(6, 6), (10, 10), (26, 26)]
    node = next(node for node in after.nodes if node.key.length == 26)
    assert node.state is not None
    slot = after.slots[node.state]
    assert (slot.temporal.length, slot.conv.length, slot.write_pos) == (26, 26, 0)
    assert slot.conv_checkpoint == slot.conv
    assert run.finished("turn1").dropped == 4


def test_turn_two_hits_twenty_six_and_prefills_thirteen() -> None:
    run = Run("multiturn")
    request = next(
        p for p in run.played if "admit turn2" in str(p.transition.action)
    ).transition.after.request("turn2")
    assert request is not None
    assert (request.prompt_len, request.cached, request.prompt_len - request.cached) == (39, 26, 13)
    assert run.tree() == [(6, 6), (10, 10), (26, 26), (39, 39), (55, 55)]
    assert run.verdict.held


def test_folding_at_finish_hits_thirty_and_prefills_nine() -> None:
    run = Run("multiturn-fold")
    request = next(
        p for p in run.played if "admit turn2" in str(p.transition.action)
    ).transition.after.request("turn2")
    assert request is not None
    assert (request.cached, request.prompt_len - request.cached) == (30, 9)
    assert run.tree() == [(6, 6), (10, 10), (30, 30), (39, 39), (59, 59)]
    assert run.verdict.held


def test_clean_on_real_tensors_in_every_dtype(gate: str, state_dtype: str, backend: str, device: str) -> None:
    run = on_tensors(backend, device, gate, state_dtype)
    assert run.verdict.held, run.verdict
    logits, states = list(run.measurements("logits")), list(run.measurements("state"))
    assert len(logits) == 43, "three chunks and forty decodes were compared with the cold run"
    assert len(states) > 80
    reply = run.finished("turn2")
    assert reply.reply == reply.cold_reply


def test_both_finish_policies_give_the_same_reply(gate: str, device: str) -> None:
    truncated = Run("multiturn", backend="torch", device=device, gate=gate).finished("turn2")
    folded = Run("multiturn-fold", backend="torch", device=device, gate=gate).finished("turn2")
    assert truncated.reply == folded.reply
    assert len(folded.reply) == 21


def test_greedy_choices_are_clear_enough_to_compare_replies(gate: str, backend: str, device: str) -> None:
    run = on_tensors(backend, device, gate)
    assert run.engine.compute.logits.smallest_margin > 5e-3  # type: ignore[attr-defined]


def test_both_backends_give_the_same_reply(gate: str, device: str) -> None:
    replies = {on_tensors(b, device, gate).finished("turn2").reply for b in ("torch", "triton")}
    assert len(replies) == 1


@pytest.mark.parametrize("backend", ["triton"])
def test_the_triton_kernels_really_ran(backend: str, device: str) -> None:
    run = on_tensors(backend, device, "gdn")
    launches = run.engine.store.pool.tensors.kernels.launches  # type: ignore[union-attr]
    mode = "triton-compiled" if device == "cuda" else "triton-interpreted"
    assert launches[f"replay_decode[{mode}]"] == 2 * 40
    assert launches[f"fold[{mode}]"] == 2
    assert launches[f"conv_step[{mode}]"] == 2 * 40
    assert launches["replay_decode[torch]"] == launches["fold[torch]"] == 0


def test_ledger_only_runs_do_not_import_torch() -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from replaylife.lifecycle.scenario.loader import load_scenario\n"
        "from replaylife.lifecycle.scenario.player import Player\n"
        "from replaylife.lifecycle.config import EngineConfig\n"
        "from replaylife.lifecycle.factory import EngineFactory\n"
        "import replaylife.scenarios\n"
        "s = load_scenario(Path(next(iter(replaylife.scenarios.__path__))) / 'multiturn.yaml')\n"
        "v = Player(s, EngineFactory(EngineConfig(s.model, s.cache)).build()).run()\n"
        "assert v.held and v.steps == 47\n"
        "assert not {'torch', 'triton'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")
