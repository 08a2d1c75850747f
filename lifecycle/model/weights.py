"""The weights of the tiny hybrid network, drawn from a seed."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch

from replaylife.lifecycle.config import ModelConfig


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One linear-attention layer.

    ``qkv [width, conv_dim]``, ``conv [conv_dim, W]``, ``a [width, HV or HV·K]``, ``b [width, HV]``,
    ``A_log [HV]``, ``dt_bias [HV] or [HV, K]``, ``out [HV·V, width]``.
    """

    qkv: torch.Tensor
    conv: torch.Tensor
    a: torch.Tensor
    b: torch.Tensor
    A_log: torch.Tensor
    dt_bias: torch.Tensor
    out: torch.Tensor

    def to(self, device: torch.device, dtype: torch.dtype) -> LayerWeights:
        """Return these weights on ``device`` in ``dtype``."""
        return LayerWeights(*(getattr(self, f.name).to(device, dtype) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Weights:
    """The whole network: ``embedding [vocab, width]``, the layers, ``head [width, vocab]``."""

    embedding: torch.Tensor
    layers: tuple[LayerWeights, ...]
    head: torch.Tensor

    def to(self, device: torch.device, dtype: torch.dtype) -> Weights:
        """Return these weights on ``device`` in ``dtype``."""
        return Weights(
            self.embedding.to(device, dtype),
            tuple(layer.to(device, dtype) for layer in self.layers),
            self.head.to(device, dtype),
        )


class _Draw:
    """Draws fp32 tensors in a fixed order from one seed, on the CPU whatever the run's device."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, scale: float) -> torch.Tensor:
        return torch.randn(shape, generator=self._generator) * scale

    def uniform(self, *shape: int, low: float, high: float) -> torch.Tensor:
        return torch.rand(shape, generator=self._generator) * (high - low) + low


def draw_weights(config: ModelConfig) -> Weights:
    """Draw the network of ``config``, fp32 on the CPU.

    Projections have scale 1/sqrt(fan-in). The gate's bias is drawn so that without input the log-decay
    lies in -0.035..-0.003, and its projection is small enough that alpha stays in 0.9..0.999: a state that
    forgets at once would hide what a fault did to it, one that never forgets would hide the gate.
    """
    draw = _Draw(config.seed)
    fan_in = config.width**-0.5
    embedding = draw.normal(config.vocab, config.width, scale=1.0)
    layers = tuple(_draw_layer(draw, config, fan_in) for _ in range(config.layers))
    return Weights(embedding, layers, draw.normal(config.width, config.vocab, scale=fan_in))


def _draw_layer(draw: _Draw, config: ModelConfig, fan_in: float) -> LayerWeights:
    heads = config.value_heads
    gate_shape = (heads,) if config.gate == "gdn" else (heads, config.key_dim)
    conv_dim = 2 * config.heads * config.key_dim + heads * config.value_dim
    A_log = draw.uniform(heads, low=-1.0, high=1.0)
    decay = draw.uniform(*gate_shape, low=math.log(0.003), high=math.log(0.035)).exp()
    rate = decay / A_log.exp().view(heads, *[1] * (len(gate_shape) - 1))
    return LayerWeights(
        qkv=draw.normal(config.width, conv_dim, scale=fan_in),
        conv=draw.normal(conv_dim, config.conv_width, scale=config.conv_width**-0.5),
        a=draw.normal(config.width, math.prod(gate_shape), scale=0.2 * fan_in),
        b=draw.normal(config.width, heads, scale=fan_in),
        A_log=A_log,
        dt_bias=torch.log(torch.expm1(rate)),
        out=draw.normal(heads * config.value_dim, config.width, scale=(heads * config.value_dim) ** -0.5),
    )
