"""One layer's convolution and recurrence over the pool's tensors, through the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from replaylife.lifecycle.config import ModelConfig
from replaylife.lifecycle.model.weights import LayerWeights
from replaylife.pool.tensors import PoolTensors


@dataclass(frozen=True, slots=True)
class MixerInputs:
    """What a layer feeds its mixer for T tokens: ``mixed [T, conv_dim]``, gate ``a``, beta input ``b``.

    For windows of T tokens in B rows each has the dimensions ``[B, T, ...]``.
    """

    mixed: torch.Tensor
    a: torch.Tensor
    b: torch.Tensor

    def windows(self, rows: int, window: int) -> MixerInputs:
        """Return ``rows`` * ``window`` tokens in a row as windows."""
        parts = (self.mixed, self.a, self.b)
        return MixerInputs(*(part.view(rows, window, *part.shape[1:]) for part in parts))


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
        if write_pos is None:
            return tensors.kernels.packed_decode(*arguments, slots)
        ring_d, ring_k, ring_g = (ring[layer] for ring in tensors.rings())
        return tensors.kernels.replay_decode(*arguments, ring_d, ring_k, ring_g, write_pos, slots)

    def verify(
        self,
        layer: int,
        weights: LayerWeights,
        inputs: MixerInputs,
        slots: torch.Tensor,
        write_pos: torch.Tensor,
        lengths: torch.Tensor,
    ) -> torch.Tensor:
        """Run a window of T tokens per row, ``lengths [B]`` of which count; returns ``[B, T, HV, V]``.

        Appends the records of all of them from ``write_pos`` on, leaves temporal and cursors alone, moves the
        live window to the end, and keeps the convolution's inputs so that it can be taken back.
        """
        tensors = self._tensors
        ring_d, ring_k, ring_g = (ring[layer] for ring in tensors.rings())
        mixed, extended = tensors.kernels.conv_verify(
            inputs.mixed, weights.conv, tensors.conv[layer], slots, lengths
        )
        tensors.keep_inputs(layer, slots, extended, lengths)
        rows, window = mixed.shape[:2]
        q, k, v = (part.view(rows, window, *part.shape[1:]) for part in self._split(mixed.flatten(0, 1)))
        return tensors.kernels.verify(
            q,
            k,
            v,
            inputs.a,
            inputs.b,
            weights.A_log,
            weights.dt_bias,
            tensors.temporal[layer],
            ring_d,
            ring_k,
            ring_g,
            write_pos,
            slots,
            lengths,
        )

    def _split(self, mixed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        config, count = self._config, mixed.shape[0]
        keys, values = config.heads * config.key_dim, config.value_heads * config.value_dim
        q, k, v = torch.split(mixed, [keys, keys, values], dim=-1)
        return (
            q.reshape(count, config.heads, config.key_dim).contiguous(),
            k.reshape(count, config.heads, config.key_dim).contiguous(),
            v.reshape(count, config.value_heads, config.value_dim).contiguous(),
        )
