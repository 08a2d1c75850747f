"""Replay decode in plain torch: output from checkpoint and ring, one record appended."""

from collections import Counter
from typing import NamedTuple

import torch
from torch import Tensor

from .checks import check_replay_decode
from .math_torch import L2_EPS, prepare, read, real_rows
from .ring import REFERENCE, Gates, RingFormat


class Pending(NamedTuple):
    """Pending records of each row, newest first; entries past `write_pos` are zero."""

    d: Tensor  # [N, L, HV, V]
    k: Tensor  # [N, L, HV, K]
    log_decay: Tensor  # [N, L, HV] or [N, L, HV, K]: what the record has lost by now, this token included
    total: Tensor  # [N, HV] or [N, HV, K]: what the checkpoint has lost by now


def _pending(
    ring_d: Tensor, ring_k: Tensor, ring_g: Tensor, slot: Tensor, count: Tensor, g: Tensor, gates: Gates
) -> Pending:
    """Gather the first `count` records of each slot; `g` is the gate to be stored for the current token.

    Step gates are added up from the newest on. Cumulative ones are subtracted, which costs accuracy where the
    sum is large: a decay then carries the rounding of its exponent.
    """
    index = torch.arange(ring_d.shape[-2], device=slot.device)
    record = (count[:, None] - 1 - index).clamp(min=0)  # [N, L]
    live = index < count[:, None]

    def take(ring: Tensor) -> Tensor:
        rows = ring[slot[:, None], :, record].float()  # [N, L, heads, ...]
        return torch.where(live.view(live.shape + (1,) * (rows.ndim - 2)), rows, 0.0)

    held = take(ring_g)
    if gates == "cumulative":
        lost, now = g[:, None] - held, g
    else:
        after = torch.cumsum(torch.cat([g[:, None], held], dim=1), dim=1)
        lost, now = after[:, :-1], after[:, -1]
    keys = take(ring_k).repeat_interleave(ring_d.shape[1] // ring_k.shape[1], dim=2)
    return Pending(take(ring_d), keys, lost, now)


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
    ring: RingFormat = REFERENCE,
    launches: Counter[str] | None = None,
) -> Tensor:
    """Return the output `[B, HV, V]` of one token per row and append its record at `ring[write_pos]`.

    Inputs as in `packed_decode`, and `ring_d [slots, HV, L, V]`, `ring_k [slots, H, L, K]`, `ring_g` fp32
    `[slots, HV, L]` (GDN) or `[slots, HV, L, K]` (KDA), `write_pos` int32 `[B]`: the records pending in each
    row's ring, less than L. Reads `temporal` and `ring[0:write_pos]`; writes `(d, k, g)` as `ring`
    says at `ring[write_pos]` and leaves `temporal`, the other records and `write_pos` alone. Raises
    `ValueError`.
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
    g = token.g
    if ring.gates == "cumulative":
        g = g + torch.where((count > 0).view(-1, *[1] * (g.ndim - 1)), ring_g[slot, :, count - 1], 0.0)
    pending = _pending(ring_d, ring_k, ring_g, slot, count, g, ring.gates)
    state = temporal[slot].float()  # [N, HV, V, K]
    decay = torch.exp(pending.total)

    def state_times(x: Tensor) -> Tensor:
        checkpoint = read(state, decay, x, vector)
        if sizes.ring == 1:  # nothing is pending when a step begins: not even a zero is added
            return checkpoint
        return checkpoint + _read_ring(pending, x, vector)

    d = token.beta[..., None] * (token.v - state_times(token.k))
    o = state_times(token.q) + d * (token.k * token.q).sum(-1, keepdim=True)
    key = token.k_heads
    if ring.keys == "raw":
        key = k[rows].float()
        d = d / torch.sqrt((key * key).sum(-1, keepdim=True) + L2_EPS).repeat_interleave(
            sizes.heads // sizes.key_heads, dim=-2
        )
        if ring_d.dtype == torch.float16:  # beside a key of nearly nothing d is past what fp16 holds
            d = d.clamp(-65504.0, 65504.0)
    ring_d[slot, :, count] = d.to(ring_d.dtype)
    ring_k[slot, :, count] = key.to(ring_k.dtype)
    ring_g[slot, :, count] = g
    out[rows] = o.to(out.dtype)
    return out
