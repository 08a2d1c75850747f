"""Chunk-parallel prefill in plain torch, used by both backends.

Inside a chunk the corrected delta vectors `d` solve a unit lower triangular system, the chunkwise form of
the delta rule (Gated DeltaNet, Kimi Delta Attention); with them state and outputs are those of a ring that
holds the whole chunk.
"""

from collections import Counter

import torch
from torch import Tensor

from .checks import check_prefill
from .math_torch import Token, prepare

CHUNK = 16


def prefill(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    temporal: Tensor,
    slots: Tensor,
    cu_seqlens: Tensor,
    *,
    launches: Counter[str] | None = None,
) -> Tensor:
    """Run packed sequences through the recurrence; sequence n is `[cu_seqlens[n], cu_seqlens[n+1])`.

    `q, k [T, H, K]`, `v [T, HV, V]`, `a [T, HV]` (GDN) or `[T, HV, K]` (KDA), `b [T, HV]`. Starts from
    `temporal[slots[n]]` and writes the state after the sequence back there, fp32 in between. Sequences with
    slot -1 write nothing and output zero. Returns `[T, HV, V]` in the dtype of `v`. Synchronises with the
    host on CUDA. Raises `ValueError` (see `checks`).
    """
    sizes = check_prefill(q, k, v, a, b, A_log, dt_bias, temporal, slots, cu_seqlens)
    out = torch.zeros_like(v)
    if not sizes.rows:
        return out
    if launches is not None:
        launches["prefill[torch]"] += 1
    tokens = prepare(q, k, v, a, b, A_log, dt_bias, sizes.vector_gate)
    bounds = cu_seqlens.tolist()
    for row, slot in enumerate(slots.tolist()):
        if slot < 0:
            continue
        state = temporal[slot].float()  # [HV, V, K]
        for start in range(bounds[row], bounds[row + 1], CHUNK):
            part = slice(start, min(start + CHUNK, bounds[row + 1]))
            o, state = _chunk(Token(*(x[part].transpose(0, 1) for x in tokens)), state, sizes.vector_gate)
            out[part] = o.transpose(0, 1).to(out.dtype)
        temporal[slot] = state.to(temporal.dtype)
    return out


def _chunk(token: Token, state: Tensor, vector: bool) -> tuple[Tensor, Tensor]:
    """Outputs `[HV, C, V]` and the state `[HV, V, K]` after one chunk of `token` tensors `[HV, C, ...]`."""
    size = token.q.shape[1]
    since_start = torch.exp(torch.cumsum(token.g, 1))  # [HV, C] or [HV, C, K]
    between = torch.exp(segment_sums(token.g))  # [HV, C (to), C (from)] or [..., K]
    if vector:
        decayed_k = between * token.k[:, None]  # [HV, to, from, K]
        kk = (decayed_k * token.k[:, :, None]).sum(-1)
        qk = (decayed_k * token.q[:, :, None]).sum(-1)
    else:
        kk = between * (token.k @ token.k.mT)
        qk = between * (token.q @ token.k.mT)
        since_start = since_start[..., None]
    beta = token.beta[..., None]
    system = torch.eye(size, device=kk.device) + beta * kk.tril(-1)
    rhs = beta * (token.v - (since_start * token.k) @ state.mT)
    d = torch.linalg.solve_triangular(system, rhs, upper=False, unitriangular=True)  # [HV, C, V]
    o = (since_start * token.q) @ state.mT + qk.tril() @ d
    until_end = between[:, -1] if vector else between[:, -1, :, None]  # [HV, C, K or 1]
    return o, state * since_start[:, -1, None] + d.mT @ (until_end * token.k)


def segment_sums(g: Tensor) -> Tensor:
    """Sums of `g [HV, C, ...]` over the half-open segments `(from, to]`, as `[HV, to, from, ...]`.

    Added up directly, never as a difference of prefix sums, which would cancel for large gates. Entries
    with from > to are zero.
    """
    size = g.shape[1]
    after = torch.ones(size, size, device=g.device, dtype=torch.bool).tril(-1)  # [token, from]
    after = after.view(size, size, *(1,) * (g.ndim - 2))
    return torch.where(after, g[:, :, None], 0.0).cumsum(1)
