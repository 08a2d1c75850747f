"""How far clean runs are from the float64 oracle: what the tolerances stand on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replaylife.lifecycle.actions import Admit, Forward, Prefill
from replaylife.lifecycle.config import CacheConfig, EngineConfig, ModelConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.model.measure import tolerance_of

from .support import Run


def worst(run: Run) -> float:
    errors = [m.error for kind in ("state", "logits") for m in run.measurements(kind)]
    assert len(errors) == 165, "every node, request and forward of the run was measured"
    return max(errors)


@pytest.mark.parametrize(
    ("state_dtype", "conv_dtype", "limit"),
    [("fp32", "fp32", 2e-6), ("fp16", "fp32", 1e-3), ("bf16", "fp32", 1e-2), ("fp32", "bf16", 4e-2)],
)
def test_clean_runs_stay_well_below_the_tolerance(
    state_dtype: str, conv_dtype: str, limit: float, gate: str, device: str
) -> None:
    run = Run(
        "multiturn",
        backend="torch",
        device=device,
        gate=gate,
        state_dtype=state_dtype,
        conv_dtype=conv_dtype,
    )
    assert 0 < worst(run) <= limit <= tolerance_of(run.engine.config) / 2


@pytest.mark.parametrize("ring_length", [1, 2, 7, 16])
def test_two_hundred_decodes_stay_within_1e_5_of_the_oracle(ring_length: int, gate: str, device: str) -> None:
    cache = replace(CacheConfig(), ring_length=ring_length)
    model = ModelConfig(gate=gate)  # type: ignore[arg-type]
    engine = EngineFactory(EngineConfig(model, cache, "torch", device)).build()
    engine.apply(Admit("a", tuple(range(40, 50))))
    engine.apply(Prefill("a", 10))
    errors: list[float] = []
    for _ in range(200):
        engine.apply(Forward(("a",)))
        errors += [m.error for m in engine.snapshot().measurements]
    assert len(errors) == 3 * 200, "state, window and logits after every step"
    assert 0 < max(errors) <= 1e-5


def test_decay_stays_in_the_range_that_keeps_damage_visible(gate: str, device: str) -> None:
    run = Run("multiturn", backend="torch", device=device, gate=gate)
    oracle = run.engine.compute.oracle  # type: ignore[attr-defined]
    after = oracle.after(run.engine.store.tree.find(5).key())  # type: ignore[union-attr]
    assert 0.9 <= after.min_alpha < after.max_alpha <= 0.999
