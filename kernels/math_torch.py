"""Arithmetic shared by the plain-torch twins, in fp32 and in the order that the Triton kernels use.

Gates and key normalisation follow Gated DeltaNet and Kimi Delta Attention as published and as
flash-linear-attention computes them: `g = -exp(A_log) * softplus(a + dt_bias)`, `beta = sigmoid(b)`,
`x / sqrt(sum(x^2) + 1e-6)`, queries scaled by `K^-0.5`.
"""

from typing import NamedTuple

import torch
from torch import Tensor

L2_EPS = 1e-6


class Token(NamedTuple):
    """What the recurrence needs of each token; `k_heads` is `k` before value heads share it."""

    q: Tensor  # [..., HV, K]
    k: Tensor  # [..., HV, K]
    k_heads: Tensor  # [..., H, K]
    v: Tensor  # [..., HV, V]
    g: Tensor  # [..., HV] or [..., HV, K]
    beta: Tensor  # [..., HV]


def log_decay(a: Tensor, A_log: Tensor, dt_bias: Tensor, vector: bool) -> Tensor:
    """Log-decay gate in fp32, never positive; exactly 0 once the softplus underflows (alpha exactly 1).

    `max(x, 0) + log1p(exp(-|x|))` is the softplus without cancellation; above 20 it is x in fp32.
    """
    x = a.float() + dt_bias
    softplus = x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))
    rate = -torch.exp(A_log)
    return (rate[:, None] if vector else rate) * softplus


def sigmoid(x: Tensor) -> Tensor:
    """`1 / (1 + exp(-x))` in fp32.

    `torch.sigmoid` rounds differently in the vectorised part of a CPU tensor and in its tail, so that a
    result would depend on what stands beside it, and on where a chunk ends.
    """
    z = torch.exp(-x.abs())
    return torch.where(x >= 0, 1.0, z) / (1.0 + z)


def normalise(x: Tensor) -> Tensor:
    """`x` scaled to unit length along its last dimension, fp32."""
    x = x.float()
    return x / torch.sqrt((x * x).sum(-1, keepdim=True) + L2_EPS)


def prepare(
    q: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, A_log: Tensor, dt_bias: Tensor, vector: bool
) -> Token:
    """Normalised queries and keys, gates and values in fp32; key heads repeated for their value heads."""
    group = v.shape[-2] // k.shape[-2]
    k_heads = normalise(k)
    return Token(
        q=(normalise(q) * k.shape[-1] ** -0.5).repeat_interleave(group, dim=-2),
        k=k_heads.repeat_interleave(group, dim=-2),
        k_heads=k_heads,
        v=v.float(),
        g=log_decay(a, A_log, dt_bias, vector),
        beta=sigmoid(b.float()),
    )


def matvec(state: Tensor, x: Tensor) -> Tensor:
    """`state [..., V, K]` applied to `x [..., K]`: multiply, then sum over K."""
    return (state * x[..., None, :]).sum(-1)


def read(state: Tensor, decay: Tensor, x: Tensor, vector: bool) -> Tensor:
    """The decayed state applied to `x`: GDN takes the scalar out of the product, KDA folds the vector in."""
    return matvec(state, decay * x) if vector else decay[..., None] * matvec(state, x)


def real_rows(slots: Tensor) -> Tensor:
    """Indices of the rows that are not padding; synchronises with the host on CUDA."""
    return (slots >= 0).nonzero().flatten()
