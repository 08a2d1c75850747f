"""One layer's convolution and recurrence over the pool's tensors, through the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from replaylife.lifecycle.config import ModelConfig
from replaylife.lifecycle.model.weights import LayerWeights
from replaylife.pool.tensors import PoolTensors


@dataclass(frozen=True, slots=True)
class MixerInputs:
    """What a layer feeds its mixer for T tokens: ``mixed [T, conv_dim]``, gate ``a``, beta input ``b``."""

    mixed: torch.Tensor
    a: torch.Tensor
    b: torch.Tensor


class Mixer:
    """Runs the kernels on one layer at a time; the pool's tensors are the only state."""

    def __init__(self, config: ModelConfig, tensors: PoolTensors) -> None:
        self._config, self._tensors = config, tensors

    def prefill(self, layer: int, weights: LayerWeights, inputs: MixerInputs, slot: int) -> torch.Tensor:
        """Run T tokens of one sequence through ``slot``; returns ``[T, HV, V]``."""
        tensors = self._tensors
        slots = tensors.indices([slot])
        bounds = tensors.indices([0, inputs.mixed.shape[0]])
        mixed = tensors.kernels.conv_prefill(inputs.mixed, weights.conv, tensors.conv[layer], slots, bounds)
        q, k, v = self._split(mixed)
        return tensors.kernels.prefill(
            q,
            k,
            v,
            inputs.a,
            inputs.b,
            weights.A_log,
            weights.dt_bias,
            tensors.temporal[layer],
            slots,
            bounds,
        )

    def decode(
        self,
        layer: int,
        weights: LayerWeights,
        inputs: MixerInputs,
        slots: torch.Tensor,
        write_pos: torch.Tensor | None,
    ) -> torch.Tensor:
        """Run one token per row; returns ``[B, HV, V]``. ``write_pos`` is the step's cursor snapshot."""
        tensors = self._tensors
        mixed = tensors.kernels.conv_step(inputs.mixed, weights.conv, tensors.conv[layer], slots)
        q, k, v = self._split(mixed)
        arguments = (q, k, v, inputs.a, inputs.b, weights.A_log, weights.dt_bias, tensors.temporal[layer])
        if tensors.ring_d is None or tensors.ring_k is None or tensors.ring_g is None or write_pos is None:
            return tensors.kernels.packed_decode(*arguments, slots)
        ring = (tensors.ring_d[layer], tensors.ring_k[layer], tensors.ring_g[layer])
        return tensors.kernels.replay_decode(*arguments, *ring, write_pos, slots)

    def _split(self, mixed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        config, count = self._config, mixed.shape[0]
        keys, values = config.heads * config.key_dim, config.value_heads * config.value_dim
        q, k, v = torch.split(mixed, [keys, keys, values], dim=-1)
        return (
            q.reshape(count, config.heads, config.key_dim).contiguous(),
            k.reshape(count, config.heads, config.key_dim).contiguous(),
            v.reshape(count, config.value_heads, config.value_dim).contiguous(),
        )
