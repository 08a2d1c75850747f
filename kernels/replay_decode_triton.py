# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Triton ships no types, and a kernel has no Python types to annotate.
"""Replay decode in Triton: read, never reconstruct.

One program per (row, value head) contracts checkpoint and ring with q and k and appends one record. The
state is never rebuilt, so there is no matrix product and nothing is written back.
"""

from collections import Counter

import torch
import triton
import triton.language as tl
from torch import Tensor

from .checks import check_replay_decode
from .math_triton import device_function, launch, load_token, round_to, state_tile, total


@device_function
def _ring_scores(
    ring_k_ptr, ring_g_ptr, p_ring_k, p_ring_g, count, q, k, g,
    K: tl.constexpr, BK: tl.constexpr, BL: tl.constexpr, VECTOR_GATE: tl.constexpr,
):  # fmt: skip
    """Decayed products of the pending keys with q and k, `[BL]`, newest first, and the summed gates.

    Row j holds record `count - 1 - j` beside the gate of the token after it, so that one running sum gives
    the decay since each record without a subtraction. Rows past the first `count` are zero and not read.
    """
    j = tl.arange(0, BL)
    o_k = tl.arange(0, BK)
    m_k = o_k < K
    keys = tl.load(
        ring_k_ptr + p_ring_k + (count - 1 - j)[:, None] * K + o_k[None, :],
        mask=(j < count)[:, None] & m_k[None, :],
        other=0.0,
    ).to(tl.float32)  # [BL, BK]
    m_gate = (j > 0) & (j <= count)
    if VECTOR_GATE:
        gates = tl.load(
            ring_g_ptr + p_ring_g + (count - j)[:, None] * K + o_k[None, :],
            mask=m_gate[:, None] & m_k[None, :],
            other=0.0,
        )
        gates = tl.where((j == 0)[:, None], g[None, :], gates)
        keys = tl.exp(tl.cumsum(gates, axis=0)) * keys
        score_q = total(keys * q[None, :], axis=1)
        score_k = total(keys * k[None, :], axis=1)
    else:
        gates = tl.load(ring_g_ptr + p_ring_g + (count - j), mask=m_gate, other=0.0)
        gates = tl.where(j == 0, g, gates)
        weight = tl.exp(tl.cumsum(gates, axis=0))
        score_q = total(keys * q[None, :], axis=1) * weight
        score_k = total(keys * k[None, :], axis=1) * weight
    return score_q, score_k, total(gates, axis=0)


@triton.jit
def _replay_decode_kernel(
    o_ptr, q_ptr, k_ptr, v_ptr, a_ptr, b_ptr, A_log_ptr, dt_bias_ptr, temporal_ptr,
    ring_d_ptr, ring_k_ptr, ring_g_ptr, write_pos_ptr, slots_ptr,
    H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, V: tl.constexpr, L: tl.constexpr,
    BK: tl.constexpr, BV: tl.constexpr, BL: tl.constexpr, ALL_V: tl.constexpr, VECTOR_GATE: tl.constexpr,
    INTERPRETED: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0).to(tl.int64)
    row = pid // HV
    i_hv = pid % HV
    slot = tl.load(slots_ptr + row).to(tl.int64)
    p_v = (row * HV + i_hv) * V
    if slot < 0:
        o_all = tl.arange(0, ALL_V)
        tl.store(o_ptr + p_v + o_all, tl.full([ALL_V], 0.0, o_ptr.dtype.element_ty), mask=o_all < V)
        return
    i_h = i_hv // (HV // H)
    count = tl.load(write_pos_ptr + row)
    q, k, kq, g, beta = load_token(
        q_ptr, k_ptr, a_ptr, b_ptr, A_log_ptr, dt_bias_ptr, row, i_h, i_hv, H, HV, K, BK, VECTOR_GATE
    )
    p_ring = (slot * HV + i_hv) * L
    p_ring_k = (slot * H + i_h) * L * K
    p_ring_g = p_ring * K if VECTOR_GATE else p_ring
    lost = g
    if L > 1:  # a ring of one record has nothing pending when a step begins: not even a zero is added
        score_q, score_k, lost = _ring_scores(
            ring_k_ptr, ring_g_ptr, p_ring_k, p_ring_g, count, q, k, g, K, BK, BL, VECTOR_GATE
        )
    decay = tl.exp(lost)
    o_k = tl.arange(0, BK)
    m_k = o_k < K
    j = tl.arange(0, BL)
    p_state = temporal_ptr + (slot * HV + i_hv) * V * K
    for i_v in range(0, V, BV):
        o_v = i_v + tl.arange(0, BV)
        m_v = o_v < V
        state = tl.load(
            p_state + o_v[:, None] * K + o_k[None, :], mask=m_v[:, None] & m_k[None, :], other=0.0
        ).to(tl.float32)  # [BV, BK]
        if VECTOR_GATE:
            sk = total(state * (decay * k)[None, :], axis=1)
            sq = total(state * (decay * q)[None, :], axis=1)
        else:
            sk = decay * total(state * k[None, :], axis=1)
            sq = decay * total(state * q[None, :], axis=1)
        if L > 1:
            records = tl.load(
                ring_d_ptr + (p_ring + count - 1 - j)[:, None] * V + o_v[None, :],
                mask=(j < count)[:, None] & m_v[None, :],
                other=0.0,
            ).to(tl.float32)  # [BL, BV]
            sk = sk + total(records * score_k[:, None], axis=0)
            sq = sq + total(records * score_q[:, None], axis=0)
        d = beta * (tl.load(v_ptr + p_v + o_v, mask=m_v, other=0.0).to(tl.float32) - sk)
        o = round_to(sq + d * kq, o_ptr.dtype.element_ty, INTERPRETED)
        tl.store(o_ptr + p_v + o_v, o, mask=m_v)
        d = round_to(d, ring_d_ptr.dtype.element_ty, INTERPRETED)
        tl.store(ring_d_ptr + (p_ring + count) * V + o_v, d, mask=m_v)
    if i_hv % (HV // H) == 0:  # the first of the value heads that share a key head writes its key
        key = round_to(k, ring_k_ptr.dtype.element_ty, INTERPRETED)
        tl.store(ring_k_ptr + p_ring_k + count * K + o_k, key, mask=m_k)
    if VECTOR_GATE:
        tl.store(ring_g_ptr + p_ring_g + count * K + o_k, g, mask=m_k)
    else:
        tl.store(ring_g_ptr + p_ring_g + count, g)


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
    """As `replay_decode_torch.replay_decode`: appends a record, leaves `temporal`, returns `[B, HV, V]`."""
    sizes = check_replay_decode(
        q, k, v, a, b, A_log, dt_bias, temporal, ring_d, ring_k, ring_g, write_pos, slots
    )
    out = torch.empty_like(v)
    BV, BK = state_tile(sizes.V, sizes.K)
    launch(
        "replay_decode",
        _replay_decode_kernel,
        (sizes.rows * sizes.heads,),
        (out, q, k, v, a, b, A_log, dt_bias, temporal, ring_d, ring_k, ring_g, write_pos, slots),
        launches,
        H=sizes.key_heads,
        HV=sizes.heads,
        K=sizes.K,
        V=sizes.V,
        L=sizes.ring,
        BK=BK,
        BV=BV,
        BL=triton.next_power_of_2(sizes.ring),
        ALL_V=triton.next_power_of_2(sizes.V),
        VECTOR_GATE=sizes.vector_gate,
    )
    return out
