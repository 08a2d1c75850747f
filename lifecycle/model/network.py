"""The ordinary network: a wrong state gives a wrong answer, as in life."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from replaylife.lifecycle.config import ModelConfig
from replaylife.lifecycle.model.mixer import Mixer, MixerInputs
from replaylife.lifecycle.model.weights import LayerWeights, draw_weights
from replaylife.pool.tensors import PoolTensors

_EPSILON = 1e-6


def rms_norm(x: torch.Tensor) -> torch.Tensor:
    """Scale the last dimension of ``x`` to a root mean square of 1."""
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + _EPSILON)


class Network:
    """Embedding, pre-norm layers of convolution and delta-rule mixing with residuals, greedy head."""

    def __init__(self, config: ModelConfig, tensors: PoolTensors) -> None:
        self._config, self._device = config, tensors.device
        self._weights = draw_weights(config).to(tensors.device, torch.float32)
        self._mixer = Mixer(config, tensors)

    def prefill(self, tokens: Sequence[int], slot: int) -> torch.Tensor:
        """Run ``tokens`` through ``slot``; returns logits ``[T, vocab]``, fp32."""
        ids = torch.tensor(tokens, device=self._device)
        return self._run(ids, lambda index, layer, inputs: self._mixer.prefill(index, layer, inputs, slot))

    def decode(
        self, tokens: torch.Tensor, slots: torch.Tensor, write_pos: torch.Tensor | None
    ) -> torch.Tensor:
        """Run one token per row; ``tokens``, ``slots``, ``write_pos`` ``[B]``; returns ``[B, vocab]``, fp32.

        Nothing here reads a value back, so that it can be captured in a CUDA graph.
        """
        return self._run(
            tokens,
            lambda index, layer, inputs: self._mixer.decode(index, layer, inputs, slots, write_pos),
        )

    def verify(
        self, tokens: torch.Tensor, slots: torch.Tensor, write_pos: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        """Run a window per row: ``tokens [B, T]``, of which ``lengths [B]`` count, from ``write_pos [B]`` on.

        Returns ``[B, T, vocab]``, fp32. See :meth:`Mixer.verify` for what it leaves behind.
        """
        rows, window = tokens.shape
        logits = self._run(
            tokens.flatten(),
            lambda index, layer, inputs: self._mixer.verify(
                index, layer, inputs.windows(rows, window), slots, write_pos, lengths
            ).flatten(end_dim=1),
        )
        return logits.view(rows, window, -1)

    def _run(
        self, tokens: torch.Tensor, mix: Callable[[int, LayerWeights, MixerInputs], torch.Tensor]
    ) -> torch.Tensor:
        x = self._weights.embedding[tokens]  # [T, width]
        for index, layer in enumerate(self._weights.layers):
            mixed = mix(index, layer, self._project(rms_norm(x), layer))  # [T, HV, V]
            x = x + rms_norm(mixed).flatten(start_dim=1) @ layer.out
        return rms_norm(x) @ self._weights.head

    def _project(self, x: torch.Tensor, layer: LayerWeights) -> MixerInputs:
        a = x @ layer.a
        if self._config.gate == "kda":
            a = a.view(-1, self._config.value_heads, self._config.key_dim)
        return MixerInputs(mixed=x @ layer.qkv, a=a, b=x @ layer.b)
