# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Triton ships no types, and a kernel has no Python types to annotate.
"""Replay decode at memory speed: the step of `replay_decode_triton`, with tiles chosen by measurement.

What makes it fast, each measured (docs/kernels.md): gates, norms and ring scores once per program, which then
walks its rows of V; K in tiles of at most `BK` that are multiplied elementwise and reduced once, so that few
lanes share a row and a sum takes few shuffles; norms taken out of the products, so that the state meets raw
q and k; state lines that leave the L2 cache first; no division or square root that rounds correctly, which
are calls around which every register is kept.
"""

from collections import Counter

import torch
import triton
import triton.language as tl
from torch import Tensor

from .checks import check_replay_decode
from .math_triton import (
    INTERPRETED,
    device_function,
    exp_of_log_decay,
    launch,
    round_to,
    sigmoid,
    softplus,
    total,
)
from .ring import RingFormat
from .tiles import INTERPRETED_DECODE, DecodeTile, key_of, table


@device_function
def load_fp32(ptr, mask, MASKED: tl.constexpr):
    """`ptr` in fp32; masked only where a size is no multiple of its tile."""
    if MASKED:
        return tl.load(ptr, mask=mask, other=0.0).to(tl.float32)
    return tl.load(ptr).to(tl.float32)


@device_function
def inverse_norm(squares):
    """`1 / sqrt(squares + 1e-6)` near fp32 rounding, exact where that is a power of two.

    Division and square root that round correctly are calls, around which the compiler keeps every register:
    they cost more than all of the arithmetic here.
    """
    x = squares + 1e-6
    r = tl.rsqrt(x)
    return r + 0.5 * r * tl.fma(-(x * r), r, 1.0)


@device_function
def _head_decay(
    a_ptr, dt_bias_ptr, ring_g_ptr, row, i_hv, p_ring, count, entry, has_gate, rate,
    HV: tl.constexpr, CUMULATIVE: tl.constexpr,
):  # fmt: skip
    """GDN: decay of each record `[BL]` and of the checkpoint, and the gate to store."""
    x = tl.load(a_ptr + row * HV + i_hv).to(tl.float32) + tl.load(dt_bias_ptr + i_hv)
    g = -rate * softplus(x, False)
    gates = tl.load(ring_g_ptr + p_ring + entry, mask=has_gate, other=0.0)
    if CUMULATIVE:  # gates are the sums up to each record
        g += tl.load(ring_g_ptr + p_ring + count - 1, mask=count > 0, other=0.0)
        return tl.exp(g - gates), tl.exp(g), g
    # Step: row j is the gate of the token after record j; the newest record is followed by the current token.
    newest = tl.arange(0, gates.shape[0]) == 0
    lost = tl.cumsum(tl.where(newest, g, gates), axis=0)
    return tl.exp(lost), tl.exp(g + total(gates, axis=0)), g


@device_function
def _channel_decay(
    a_ptr, dt_bias_ptr, ring_g_ptr, row, i_hv, p_ring, count, has_gate, rate, o_k, writes,
    HV: tl.constexpr, K: tl.constexpr, MASK_K: tl.constexpr, CUMULATIVE: tl.constexpr,
    INTERPRETED: tl.constexpr,
):  # fmt: skip
    """KDA, one tile of K: decay of each record `[BL, BK]` and of the checkpoint `[BK]`; stores the gate."""
    m_k = o_k < K
    p_gate = ring_g_ptr + p_ring * K + o_k
    x = load_fp32(a_ptr + (row * HV + i_hv) * K + o_k, m_k, MASK_K)
    g = -rate * softplus(x + load_fp32(dt_bias_ptr + i_hv * K + o_k, m_k, MASK_K), False)
    m_gate = has_gate[:, None] & m_k[None, :] if MASK_K else has_gate[:, None]
    p_newest = p_gate + (count - 1) * K if CUMULATIVE else p_gate + count * K
    gates = tl.load(p_newest[None, :] - tl.arange(0, has_gate.shape[0])[:, None] * K, mask=m_gate, other=0.0)
    if CUMULATIVE:
        g += tl.load(p_gate + (count - 1) * K, mask=m_k & (count > 0), other=0.0)
        lost, lost_state = g[None, :] - gates, g
    else:
        newest = tl.arange(0, gates.shape[0]) == 0
        lost = tl.cumsum(tl.where(newest[:, None], g[None, :], gates), axis=0)
        lost_state = g + total(gates, axis=0)
    if writes:
        tl.store(p_gate + count * K, g, mask=m_k)
    return exp_of_log_decay(lost, INTERPRETED), exp_of_log_decay(lost_state, INTERPRETED)


@device_function
def _prepare(
    q_ptr, k_ptr, a_ptr, A_log_ptr, dt_bias_ptr, ring_k_ptr, ring_g_ptr, row, slot, i_hv, i_s, count,
    H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, L: tl.constexpr, BK: tl.constexpr, BL: tl.constexpr,
    VECTOR_GATE: tl.constexpr, RAW: tl.constexpr, CUMULATIVE: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """All that a head needs once, and the append of its key and gate.

    Returns what scales the state's products with q and k (norm, and for GDN the decay), `1 / |k|`, `k.q`, the
    weights of the records for q and k `[BL]`, and q and k as the state meets them, one tile of K each.
    Only the first slice of V writes, and of the value heads that share a key the first.
    """
    MASK_K: tl.constexpr = K % BK != 0
    p_head = (row * H + i_hv // (HV // H)) * K
    p_ring = (slot * HV + i_hv) * L
    p_ring_k = (slot * H + i_hv // (HV // H)) * L * K
    p_append = ring_k_ptr + p_ring_k + count * K
    writes_key = (i_s == 0) & (i_hv % (HV // H) == 0)
    j = tl.arange(0, BL)
    live = j < count
    if CUMULATIVE:
        entry, has_gate = count - 1 - j, live
    else:
        entry, has_gate = count - j, (j > 0) & (j < count + 1)
    rate = tl.exp(tl.load(A_log_ptr + i_hv))
    decay, weight = 1.0, 1.0
    if not VECTOR_GATE:
        weight, decay, g = _head_decay(
            a_ptr, dt_bias_ptr, ring_g_ptr, row, i_hv, p_ring, count, entry, has_gate, rate, HV, CUMULATIVE
        )
        if i_s == 0:
            tl.store(ring_g_ptr + p_ring + count, g)
    ring_q = tl.full([BL, BK], 0.0, tl.float32)
    ring_k = tl.full([BL, BK], 0.0, tl.float32)
    qq = tl.full([BK], 0.0, tl.float32)
    kk = tl.full([BK], 0.0, tl.float32)
    kq = tl.full([BK], 0.0, tl.float32)
    qs, ks = (), ()
    for i in tl.static_range((K + BK - 1) // BK):
        o_k = i * BK + tl.arange(0, BK)
        m_k = o_k < K
        q = load_fp32(q_ptr + p_head + o_k, m_k, MASK_K)
        k = load_fp32(k_ptr + p_head + o_k, m_k, MASK_K)
        qq += q * q
        kk += k * k
        kq += k * q
        p_key = p_append - K - j[:, None] * K + o_k[None, :]
        m_ring = live[:, None] & m_k[None, :] if MASK_K else live[:, None]
        keys = tl.load(p_key, mask=m_ring, other=0.0).to(tl.float32)  # [BL, BK]
        if RAW and writes_key:
            tl.store(p_append + o_k, round_to(k, ring_k_ptr.dtype.element_ty, INTERPRETED), mask=m_k)
        e = 1.0
        if VECTOR_GATE:
            lost, e = _channel_decay(
                a_ptr, dt_bias_ptr, ring_g_ptr, row, i_hv, p_ring, count, has_gate, rate, o_k, i_s == 0,
                HV, K, MASK_K, CUMULATIVE, INTERPRETED,
            )  # fmt: skip
            keys = keys * lost
        qs, ks = qs + (q * e,), ks + (k * e,)  # type: ignore[assignment]  # noqa: RUF005
        ring_q += keys * q[None, :]
        ring_k += keys * k[None, :]
    q_norm = inverse_norm(total(qq, axis=0)) * (K**-0.5)
    k_norm = inverse_norm(total(kk, axis=0))
    if not RAW and writes_key:
        for i in tl.static_range((K + BK - 1) // BK):
            o_k = i * BK + tl.arange(0, BK)
            key = load_fp32(k_ptr + p_head + o_k, o_k < K, MASK_K) * k_norm
            tl.store(p_append + o_k, round_to(key, ring_k_ptr.dtype.element_ty, INTERPRETED), mask=o_k < K)
    ring_q = total(ring_q, axis=1) * weight * q_norm
    ring_k = total(ring_k, axis=1) * weight * k_norm
    return decay * q_norm, decay * k_norm, k_norm, total(kq, axis=0) * q_norm * k_norm, ring_q, ring_k, qs, ks


@device_function
def _read_state(
    p_state, o_v, qs, ks, K: tl.constexpr, V: tl.constexpr, BK: tl.constexpr,
    MASK_K: tl.constexpr, MASK_V: tl.constexpr,
):  # fmt: skip
    """Rows `o_v` of the checkpoint times q and k, `[BV]` each."""
    acc_q = tl.full([o_v.shape[0], BK], 0.0, tl.float32)
    acc_k = tl.full([o_v.shape[0], BK], 0.0, tl.float32)
    for i in tl.static_range((K + BK - 1) // BK):
        o_k = i * BK + tl.arange(0, BK)
        p_tile = p_state + o_v[:, None] * K + o_k[None, :]
        if MASK_K or MASK_V:
            state = tl.load(p_tile, mask=(o_v < V)[:, None] & (o_k < K)[None, :], other=0.0)
        else:
            state = tl.load(p_tile, eviction_policy="evict_first")
        acc_q += state.to(tl.float32) * qs[i][None, :]
        acc_k += state.to(tl.float32) * ks[i][None, :]
    return total(acc_q, axis=1), total(acc_k, axis=1)


@triton.jit
def _tuned_decode_kernel(
    o_ptr, q_ptr, k_ptr, v_ptr, a_ptr, b_ptr, A_log_ptr, dt_bias_ptr, temporal_ptr,
    ring_d_ptr, ring_k_ptr, ring_g_ptr, write_pos_ptr, slots_ptr,
    H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, V: tl.constexpr, L: tl.constexpr,
    BK: tl.constexpr, BV: tl.constexpr, VS: tl.constexpr, BL: tl.constexpr, VECTOR_GATE: tl.constexpr,
    RAW: tl.constexpr, CUMULATIVE: tl.constexpr, STAGES: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    NS: tl.constexpr = (V + VS - 1) // VS
    MASK_K: tl.constexpr = K % BK != 0
    MASK_V: tl.constexpr = V % VS != 0
    pid = tl.program_id(0)
    i_s = pid % NS
    i_hv = (pid // NS) % HV
    row = (pid // (NS * HV)).to(tl.int64)
    slot = tl.load(slots_ptr + row).to(tl.int64)
    p_v = (row * HV + i_hv) * V
    if slot < 0:
        for i_v in range(i_s * VS, i_s * VS + VS, BV):
            o_v = i_v + tl.arange(0, BV)
            tl.store(o_ptr + p_v + o_v, tl.full([BV], 0.0, o_ptr.dtype.element_ty), mask=o_v < V)
        return
    count = tl.load(write_pos_ptr + row)
    p_ring = (slot * HV + i_hv) * L
    q_scale, k_scale, k_norm, kq, ring_q, ring_k, qs, ks = _prepare(
        q_ptr, k_ptr, a_ptr, A_log_ptr, dt_bias_ptr, ring_k_ptr, ring_g_ptr, row, slot, i_hv, i_s, count,
        H, HV, K, L, BK, BL, VECTOR_GATE, RAW, CUMULATIVE, INTERPRETED,
    )  # fmt: skip
    beta = sigmoid(tl.load(b_ptr + row * HV + i_hv).to(tl.float32), False)
    j = tl.arange(0, BL)
    live = j < count
    p_append = ring_d_ptr + (p_ring + count) * V
    p_state = temporal_ptr + (slot * HV + i_hv) * V * K
    for i_v in tl.range(i_s * VS, i_s * VS + VS, BV, num_stages=STAGES):
        o_v = i_v + tl.arange(0, BV)
        m_v = o_v < V
        state_q, state_k = _read_state(p_state, o_v, qs, ks, K, V, BK, MASK_K, MASK_V)
        m_ring = live[:, None] & m_v[None, :] if MASK_V else live[:, None]
        p_d = p_append - V - j[:, None] * V + o_v[None, :]
        records = tl.load(p_d, mask=m_ring, other=0.0).to(tl.float32)  # [BL, BV]
        sk = k_scale * state_k + total(records * ring_k[:, None], axis=0)
        sq = q_scale * state_q + total(records * ring_q[:, None], axis=0)
        d = beta * (load_fp32(v_ptr + p_v + o_v, m_v, MASK_V) - sk)
        o = round_to(sq + d * kq, o_ptr.dtype.element_ty, INTERPRETED)
        tl.store(o_ptr + p_v + o_v, o, mask=m_v)
        if RAW:
            d = d * k_norm
            if ring_d_ptr.dtype.element_ty == tl.float16:  # beside a key of nearly nothing d is past fp16
                d = tl.minimum(tl.maximum(d, -65504.0), 65504.0)
        d = round_to(d, ring_d_ptr.dtype.element_ty, INTERPRETED)
        tl.store(p_append + o_v, d, mask=m_v)


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
    ring: RingFormat,
    tile: DecodeTile | None = None,
    launches: Counter[str] | None = None,
) -> Tensor:
    """As `replay_decode_torch.replay_decode`, for any `ring`; `tile` None takes the shipped table's."""
    sizes = check_replay_decode(
        q, k, v, a, b, A_log, dt_bias, temporal, ring_d, ring_k, ring_g, write_pos, slots
    )
    out = torch.empty_like(v)
    if tile is None:
        key = key_of(sizes.vector_gate, sizes.ring, temporal.dtype)
        tile = INTERPRETED_DECODE if INTERPRETED else table().decode(key, sizes.rows)
    tile = tile.within(sizes.K, sizes.V)
    launch(
        "replay_decode",
        _tuned_decode_kernel,
        (sizes.rows * sizes.heads * triton.cdiv(sizes.V, tile.VS),),
        (out, q, k, v, a, b, A_log, dt_bias, temporal, ring_d, ring_k, ring_g, write_pos, slots),
        launches,
        num_warps=tile.num_warps,
        registers=tile.registers,
        enable_fp_fusion=True,
        H=sizes.key_heads,
        HV=sizes.heads,
        K=sizes.K,
        V=sizes.V,
        L=sizes.ring,
        BK=tile.BK,
        BV=tile.BV,
        VS=tile.VS,
        BL=triton.next_power_of_2(sizes.ring),
        VECTOR_GATE=sizes.vector_gate,
        RAW=ring.keys == "raw",
        CUMULATIVE=ring.gates == "cumulative",
        STAGES=tile.num_stages,
    )
    return out
