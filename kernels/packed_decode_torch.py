"""Packed decode in plain torch: one token per row, the whole state read and written."""

from collections import Counter

import torch
from torch import Tensor

from .checks import check_packed_decode
from .math_torch import prepare, read, real_rows


def packed_decode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    temporal: Tensor,
    slots: Tensor,
    *,
    launches: Counter[str] | None = None,
) -> Tensor:
    """Advance `temporal [slots, HV, V, K]` by one token in place and return the output `[B, HV, V]`.

    Takes raw `q, k [B, H, K]`, `v [B, HV, V]`, `a [B, HV]` (GDN) or `[B, HV, K]` (KDA), `b [B, HV]`,
    `A_log [HV]`, `dt_bias` like a row of `a`, and `slots` int32 `[B]`, distinct except for -1, whose rows
    write nothing and output zero. Output in the dtype of `v`. Raises `ValueError` (see `checks`).
    """
    sizes = check_packed_decode(q, k, v, a, b, A_log, dt_bias, temporal, slots)
    out = torch.zeros_like(v)
    if not sizes.rows:
        return out
    if launches is not None:
        launches["packed_decode[torch]"] += 1
    rows = real_rows(slots)
    slot = slots[rows].long()
    token = prepare(q[rows], k[rows], v[rows], a[rows], b[rows], A_log, dt_bias, sizes.vector_gate)
    state = temporal[slot].float()  # [N, HV, V, K]
    alpha = torch.exp(token.g)
    d = token.beta[..., None] * (token.v - read(state, alpha, token.k, sizes.vector_gate))
    o = read(state, alpha, token.q, sizes.vector_gate) + d * (token.k * token.q).sum(-1, keepdim=True)
    decay = alpha[:, :, None, :] if sizes.vector_gate else alpha[:, :, None, None]
    state = state * decay + d[..., None] * token.k[..., None, :]
    temporal[slot] = state.to(temporal.dtype)
    out[rows] = o.to(out.dtype)
    return out
