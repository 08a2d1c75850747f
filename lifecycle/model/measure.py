"""Numeric checks: what the tensors hold against the float64 oracle."""

from __future__ import annotations

from collections.abc import Sequence
from math import ulp

import torch

from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.model.oracle import Oracle
from replaylife.lifecycle.snapshot import Measurement
from replaylife.pool import DType
from replaylife.pool.tensors import PoolTensors

# Relative error of a whole model's states and logits that rounding may explain, by the coarsest dtype on the
# state's way. Clean runs of the worked example stay well below them: tests/lifecycle/test_clean_error.py.
TOLERANCE: dict[DType, float] = {"fp32": 1e-5, "fp16": 4e-3, "bf16": 8e-2}


def tolerance_of(config: EngineConfig) -> float:
    """Return the tolerance of states and logits: that of the coarsest of state, conv and ring dtype."""
    dtypes = {config.model.state_dtype, config.model.conv_dtype}
    if config.cache.replayssm:
        shape = config.pool_shape()
        dtypes |= {shape.ring_dtype, shape.key_dtype}
    return max(TOLERANCE[dtype] for dtype in dtypes)


def measure_budget(predicted: int, allocated: int) -> Measurement:
    """Compare the bytes set aside for the pool with those that its tensors take: equal, not nearly so."""
    error = abs(predicted - allocated) / allocated
    detail = f"{predicted:,} bytes predicted, {allocated:,} allocated"
    return Measurement("budget", "pool", "bytes", 0, error, ulp(0.0), detail)


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the Frobenius-relative error ``|found - expected| / |expected|``, in float64 on the CPU."""
    reference = expected.double().cpu()
    return float((found.double().cpu() - reference).norm() / reference.norm().clamp_min(1e-300))


def live_state(tensors: PoolTensors, slot: int, pending: int) -> torch.Tensor:
    """Return checkpoint + the first ``pending`` ring records of ``slot``: ``[layers, HV, V, K]``, float64.

    The replay formula in plain torch: ``S = S0 Diag(exp G) + sum_j d_j (exp(G - G_j) * k_j)^T``.
    """
    state = tensors.temporal[:, slot].double().cpu()
    if not pending or tensors.ring_d is None or tensors.ring_k is None or tensors.ring_g is None:
        return state
    d = tensors.ring_d[:, slot, :, :pending].double().cpu()  # [layers, HV, m, V]
    k = tensors.ring_k[:, slot, :, :pending].double().cpu()  # [layers, H, m, K]
    g = tensors.ring_g[:, slot, :, :pending].double().cpu()  # [layers, HV, m(, K)]
    if g.dim() == 3:
        g = g[..., None]
    cumulative = g if tensors.kernels.ring.gates == "cumulative" else g.cumsum(dim=2)
    total = cumulative[:, :, -1:]
    keys = k.repeat_interleave(d.shape[1] // k.shape[1], dim=1) * torch.exp(total - cumulative)
    return state * torch.exp(total) + torch.einsum("lhmv,lhmk->lhvk", d, keys)


class StateMeter:
    """Measures slots against the oracle, component by component, the worst layer counting."""

    def __init__(self, tensors: PoolTensors, oracle: Oracle, tolerance: float) -> None:
        self._tensors, self._oracle, self._tolerance = tensors, oracle, tolerance

    def measure(
        self, subject: str, tokens: Sequence[int], slot: int, pending: int
    ) -> tuple[Measurement, Measurement]:
        """Compare checkpoint + ring and live conv of ``slot`` with what ``tokens`` should have left."""
        state = live_state(self._tensors, slot, pending)
        return self.compare(subject, tokens, state, self._tensors.conv[:, slot])

    def compare(
        self, subject: str, tokens: Sequence[int], temporal: torch.Tensor, conv: torch.Tensor
    ) -> tuple[Measurement, Measurement]:
        """Compare ``temporal [layers, HV, V, K]`` and ``conv [layers, conv_dim, W-1]`` with the oracle's."""
        expected = self._oracle.after(tokens)
        return (
            self._worst(subject, "temporal", len(tokens), temporal, expected.temporal),
            self._worst(subject, "conv", len(tokens), conv, expected.conv),
        )

    def _worst(
        self,
        subject: str,
        component: str,
        position: int,
        found: torch.Tensor,
        expected: Sequence[torch.Tensor],
    ) -> Measurement:
        errors = [relative_error(mine, oracle) for mine, oracle in zip(found, expected, strict=True)]
        layer = max(range(len(errors)), key=errors.__getitem__)
        return Measurement(
            "state", subject, component, position, errors[layer], self._tolerance, f"layer {layer}"
        )


class LogitMeter:
    """Measures logits position by position against the cold run fed the same tokens."""

    def __init__(self, oracle: Oracle, tolerance: float) -> None:
        self._oracle, self._tolerance = oracle, tolerance
        self.smallest_margin = float("inf")

    def measure(self, subject: str, tokens: Sequence[int], start: int, logits: torch.Tensor) -> Measurement:
        """Compare logits ``[T, vocab]`` of positions from ``start``; the first one out of tolerance counts.

        Where all are within it, the worst counts. ``detail`` has the largest error of all of them.
        """
        rows = logits.double().cpu()
        errors = [
            relative_error(row, self._oracle.after(tokens[: start + offset + 1]).logits)
            for offset, row in enumerate(rows)
        ]
        worst = max(range(len(errors)), key=errors.__getitem__)
        first = next((i for i, error in enumerate(errors) if not error <= self._tolerance), worst)
        top = rows[-1].topk(2).values
        self.smallest_margin = min(self.smallest_margin, float(top[0] - top[1]))
        detail = f"largest {errors[worst]:.1e} at position {start + worst}"
        return Measurement("logits", subject, "logits", start + first, errors[first], self._tolerance, detail)
