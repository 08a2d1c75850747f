"""Static buffers, padding rows and, on CUDA, one captured graph that serves every step."""

from __future__ import annotations

import pytest
import torch

from replaylife.lifecycle.events import Decoded, StateFolded

from .support import Run


def test_static_buffers_give_the_same_replies_as_none(gate: str, device: str) -> None:
    plain = Run("graph-mode", backend="torch", device=device, gate=gate, cache={"graph_rows": None})
    static = Run("graph-mode", backend="torch", device=device, gate=gate)
    assert static.engine.compute.graph is not None  # type: ignore[attr-defined]
    assert plain.engine.compute.graph is None  # type: ignore[attr-defined]
    for name in "abc":
        assert static.finished(name).reply == plain.finished(name).reply


def test_the_scenario_mixes_ring_positions_forced_folds_and_padding() -> None:
    run = Run("graph-mode")
    steps = [[e for e in p.transition.events if isinstance(e, Decoded)] for p in run.played]
    batches = [rows for rows in steps if len(rows) > 1]
    assert sum(len({row.cursor_before for row in rows}) > 1 for rows in batches) >= 5
    assert all(len(rows) < 4 for rows in steps), "every step has padding rows"
    folds = [e for p in run.played for e in p.transition.events if isinstance(e, StateFolded)]
    assert sum(fold.forced and fold.records < 4 for fold in folds) >= 2


def test_padding_rows_leave_every_other_slot_alone(gate: str, device: str) -> None:
    run = Run("mixed-batch", backend="torch", device=device, gate=gate)
    untouched = list(run.measurements("untouched"))
    assert len(untouched) > 100
    assert not [m for m in untouched if m.exceeded]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device for a CUDA graph")
@pytest.mark.parametrize("replayssm", [True, False])
def test_on_cuda_one_graph_is_captured_and_replayed_for_every_step(gate: str, replayssm: bool) -> None:
    run = Run("graph-mode", backend="triton", device="cuda", gate=gate, cache={"replayssm": replayssm})
    decoder = run.engine.compute.graph  # type: ignore[attr-defined]
    steps = sum(any(isinstance(e, Decoded) for e in p.transition.events) for p in run.played)
    assert (decoder.captures, decoder.replays) == (1, steps)
    assert steps >= 19
    assert run.verdict.violations == []
    for name in "abc":
        assert run.finished(name).reply == run.finished(name).cold_reply
