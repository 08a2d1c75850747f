"""Replay decode in plain torch: output from checkpoint and ring, one record appended."""

from collections import Counter
from typing import NamedTuple

import torch
from torch import Tensor

from .checks import check_replay_decode
from .math_torch import prepare, read, real_rows


class Pending(NamedTuple):
    """Pending records of each row, newest first; entries past `write_pos` are zero."""

    d: Tensor  # [N, L, HV, V]
    k: Tensor  # [N, L, HV, K]
    log_decay: Tensor  # [N, L, HV] or [N, L, HV, K]: what the record has lost by now, this token included
    total: Tensor  # [N, HV] or [N, HV, K]: what the checkpoint has lost by now


def _pending(
    ring_d: Tensor, ring_k: Tensor, ring_g: Tensor, slot: Tensor, count: Tensor, g: Tensor
) -> Pending:
    """Gather the first `count` records of each slot.

    Decays are sums of the gates after the record, added up from the newest on: a difference of two sums
    from the checkpoint would cancel once the gates are large.
    """
    index = torch.arange(ring_d.shape[-2], device=slot.device)
    record = (count[:, None] - 1 - index).clamp(min=0)  # [N, L]
    live = index < count[:, None]

    def take(ring: Tensor) -> Tensor:
        rows = ring[slot[:, None], :, record].float()  # [N, L, heads, ...]
        return torch.where(live.view(live.shape + (1,) * (rows.ndim - 2)), rows, 0.0)

    gates = take(ring_g)
    lost = torch.cumsum(torch.cat([g[:, None], gates[:, :-1]], dim=1), dim=1)
    keys = take(ring_k).repeat_interleave(ring_d.shape[1] // ring_k.shape[1], dim=2)
    return Pending(take(ring_d), keys, lost, lost[:, -1])


def _read_ring(pending: Pending, x: Tensor, vector: bool) -> Tensor:
    """Contribution of the pending records to the state applied to `x [N, HV, K]`; `[N, HV, V]`."""
    weight = torch.exp(pending.log_decay)
    keys = weight * pending.k if vector else pending.k
    score = (keys * x[:, None]).sum(-1)  # [N, L, HV]
    score = score if vector else score * weight
    return (pending.d * score[..., None]).sum(1)


def replay_decode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    temporal: Tensor,
    ring_d: Tensor,
    ring_k: Tensor,
    ring_g: Tensor,
    write_pos: Tensor,
    slots: Tensor,
    *,
    launches: Counter[str] | None = None,
) -> Tensor:
    """Return the output `[B, HV, V]` of one token per row and append its record at `ring[write_pos]`.

    Inputs as in `packed_decode`, and `ring_d [slots, HV, L, V]`, `ring_k [slots, H, L, K]`, `ring_g` fp32
    `[slots, HV, L]` (GDN) or `[slots, HV, L, K]` (KDA), `write_pos` int32 `[B]`: the records pending in each
    row's ring, less than L. Reads `temporal` and `ring[0:write_pos]`; writes `(d, normalised k, g)` at
    `ring[write_pos]` and leaves `temporal`, the other records and `write_pos` alone. Raises `ValueError`.
    """
    sizes = check_replay_decode(
        q, k, v, a, b, A_log, dt_bias, temporal, ring_d, ring_k, ring_g, write_pos, slots
    )
    out = torch.zeros_like(v)
    if not sizes.rows:
        return out
    if launches is not None:
        launches["replay_decode[torch]"] += 1
    rows = real_rows(slots)
    slot, count = slots[rows].long(), write_pos[rows].long()
    vector = sizes.vector_gate
    token = prepare(q[rows], k[rows], v[rows], a[rows], b[rows], A_log, dt_bias, vector)
    pending = _pending(ring_d, ring_k, ring_g, slot, count, token.g)
    state = temporal[slot].float()  # [N, HV, V, K]
    decay = torch.exp(pending.total)

    def state_times(x: Tensor) -> Tensor:
        checkpoint = read(state, decay, x, vector)
        if sizes.ring == 1:  # nothing is pending when a step begins: not even a zero is added
            return checkpoint
        return checkpoint + _read_ring(pending, x, vector)

    d = token.beta[..., None] * (token.v - state_times(token.k))
    o = state_times(token.q) + d * (token.k * token.q).sum(-1, keepdim=True)
    ring_d[slot, :, count] = d.to(ring_d.dtype)
    ring_k[slot, :, count] = token.k_heads.to(ring_k.dtype)
    ring_g[slot, :, count] = token.g
    out[rows] = o.to(out.dtype)
    return out
