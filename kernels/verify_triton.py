# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Triton ships no types, and a kernel has no Python types to annotate.
"""Speculative verify in Triton: one program per (row, value head, slice of V) reads its state once a window.

With `S0` the checkpoint and X the tokens of the window, each decayed by all gates up to itself, what was
there before the window gives `S0 X` and, by the ring, `d (k.X)`: matrix products. Among themselves the tokens
obey a triangular system, because each `d` holds the records before it; it is solved forward, a token at a
time, on the numbers that the ring will hold.
"""

from collections import Counter

import torch
import triton
import triton.language as tl
from torch import Tensor

from .fold_tuned_triton import channel_weights, head_weights
from .math_triton import INTERPRETED, device_function, launch, round_to, sigmoid, softplus, total
from .replay_decode_tuned_triton import inverse_norm
from .ring import RingFormat
from .tiles import MIN_DOT, ceil_pow2
from .window_checks import check_verify

# Chosen by registers alone (255 a thread and no spill up to 16 tokens and records), not yet by measurement.
BLOCK_V, SLICE_V, WARPS = 32, 64, 4


@device_function
def _dot(x, y):
    """`x [M, N] . y [P, N]`, `[M, P]`, in fp32 throughout."""
    return tl.dot(x, tl.trans(y), input_precision="ieee")


@device_function
def _head_gates(
    keys, ring_g_ptr, a_ptr, dt_bias_ptr, p_ring, row, i_hv, count, length, rate, writes,
    T: tl.constexpr, HV: tl.constexpr, BT: tl.constexpr, CUMULATIVE: tl.constexpr,
):  # fmt: skip
    """GDN: checkpoint decay, decayed pending keys, gate sums `[BT, 1]`, decay of i by t `[BT i, BT t]`."""
    o_t = tl.arange(0, BT)
    m_t = o_t < length
    decay, old_keys = head_weights(keys, ring_g_ptr + p_ring, count, CUMULATIVE)
    x = tl.load(a_ptr + (row * T + o_t) * HV + i_hv, mask=m_t, other=0.0).to(tl.float32)
    g = tl.where(m_t, -rate * softplus(x + tl.load(dt_bias_ptr + i_hv), False), 0.0)
    sums = tl.cumsum(g, axis=0)
    # Row i adds the gates after token i: a difference of sums would lose digits where the sums are large.
    after = tl.where(o_t[None, :] > o_t[:, None], g[None, :], 0.0)
    lost = tl.cumsum(after, axis=1)
    if writes:
        stored = g
        if CUMULATIVE:
            stored = sums + tl.load(ring_g_ptr + p_ring + count - 1, mask=count > 0, other=0.0)
        tl.store(ring_g_ptr + p_ring + count + o_t, stored, mask=m_t)
    return decay, old_keys, sums[:, None], tl.exp(lost)


@device_function
def _channel_gates(
    keys, ring_g_ptr, a_ptr, dt_bias_ptr, p_ring, row, i_hv, count, length, rate, writes, o_k,
    T: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, BT: tl.constexpr, CUMULATIVE: tl.constexpr,
):  # fmt: skip
    """As `_head_gates` for KDA: decay `[1, BK]`, sums `[BT, BK]`, and the gates `[BT, BK]` themselves."""
    o_t = tl.arange(0, BT)
    m_k = o_k < K
    m_gate = (o_t < length)[:, None] & m_k[None, :]
    p_gate = ring_g_ptr + p_ring * K + o_k
    decay, old_keys = channel_weights(keys, p_gate, m_k, count, K, CUMULATIVE)
    p_a = a_ptr + ((row * T + o_t)[:, None] * HV + i_hv) * K + o_k[None, :]
    x = tl.load(p_a, mask=m_gate, other=0.0).to(tl.float32)
    x += tl.load(dt_bias_ptr + i_hv * K + o_k, mask=m_k, other=0.0)[None, :]
    g = tl.where(m_gate, -rate * softplus(x, False), 0.0)
    sums = tl.cumsum(g, axis=0)
    if writes:
        stored = g
        if CUMULATIVE:
            stored = sums + tl.load(p_gate + (count - 1) * K, mask=m_k & (count > 0), other=0.0)[None, :]
        tl.store(p_gate[None, :] + (count + o_t)[:, None] * K, stored, mask=m_gate)
    return decay, old_keys, sums, g


@device_function
def _channel_scores(q, k, keys, g, length, BT: tl.constexpr):
    """KDA: `[BT i, BT t]`, scores of record i, decayed by the channels' gates up to t, with q and k of t."""
    o_t = tl.arange(0, BT)
    score_q = tl.full([BT, BT], 0.0, tl.float32)
    score_k = tl.full([BT, BT], 0.0, tl.float32)
    for t in range(1, length):
        at = (o_t == t)[:, None]
        keys = tl.where((o_t < t)[:, None], keys * tl.exp(total(tl.where(at, g, 0.0), axis=0))[None, :], keys)
        of_q = total(keys * total(tl.where(at, q, 0.0), axis=0)[None, :], axis=1)
        of_k = total(keys * total(tl.where(at, k, 0.0), axis=0)[None, :], axis=1)
        here = o_t[None, :] == t
        score_q = tl.where(here, of_q[:, None], score_q)
        score_k = tl.where(here, of_k[:, None], score_k)
    return score_q, score_k


@device_function
def _solve(
    u, score_k, beta, d_scale, length, BT: tl.constexpr, BV: tl.constexpr,
    D_TYPE: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """`d` of every token `[BT, BV]`, and as the ring stores it; `u` is `d` but for the window's records."""
    o_t = tl.arange(0, BT)
    d = tl.full([BT, BV], 0.0, tl.float32)
    stored = tl.full([BT, BV], 0.0, tl.float32)
    pull = score_k * beta[None, :]
    for t in range(length):
        at = o_t == t
        of_t = total(tl.where(at[None, :], pull, 0.0), axis=1)  # [BT]: nothing from t on
        now = total(tl.where(at[:, None], u, -(of_t[:, None] * stored)), axis=0)
        kept = now * total(tl.where(at, d_scale, 0.0), axis=0)
        if tl.float16 == D_TYPE:  # beside a key of nearly nothing d is past fp16
            kept = tl.minimum(tl.maximum(kept, -65504.0), 65504.0)
        d = tl.where(at[:, None], now[None, :], d)
        stored = tl.where(at[:, None], round_to(kept, D_TYPE, INTERPRETED).to(tl.float32)[None, :], stored)
    return d, stored


@device_function
def _load_window(
    q_ptr, k_ptr, b_ptr, row, i_hv, length, o_k,
    T: tl.constexpr, H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, BT: tl.constexpr,
):  # fmt: skip
    """Normalised q and k, the raw key `[BT, BK]`, and `1 / |k|` and beta `[BT]`; zeros past `length`."""
    o_t = tl.arange(0, BT)
    m_t = o_t < length
    m_tile = m_t[:, None] & (o_k < K)[None, :]
    p_tile = ((row * T + o_t)[:, None] * H + i_hv // (HV // H)) * K + o_k[None, :]
    q = tl.load(q_ptr + p_tile, mask=m_tile, other=0.0).to(tl.float32)
    raw = tl.load(k_ptr + p_tile, mask=m_tile, other=0.0).to(tl.float32)
    q = q * (inverse_norm(total(q * q, axis=1)) * (K**-0.5))[:, None]
    k_norm = inverse_norm(total(raw * raw, axis=1))
    beta = sigmoid(tl.load(b_ptr + (row * T + o_t) * HV + i_hv, mask=m_t, other=0.0).to(tl.float32), False)
    return q, raw * k_norm[:, None], raw, k_norm, beta


@device_function
def _rows_of_v(
    p_o, p_v, p_state, p_ring, o_v, m_k, count, length, q, k, kq, old_q, old_k, score_q, score_k,
    beta, d_scale,
    T: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BL: tl.constexpr, BT: tl.constexpr, BV: tl.constexpr,
    INTERPRETED: tl.constexpr,
):  # fmt: skip
    """Rows `o_v` of the state once through: outputs and records of all tokens."""
    o_t = tl.arange(0, BT)
    m_v = o_v < V
    j = tl.arange(0, BL)
    state = tl.load(p_state + o_v[:, None] * K, mask=m_v[:, None] & m_k[None, :], other=0.0).to(tl.float32)
    p_d = p_ring + (count - 1 - j)[:, None] * V + o_v[None, :]
    records = tl.load(p_d, mask=(j < count)[:, None] & m_v[None, :], other=0.0).to(tl.float32)  # [BL, BV]
    sq = tl.dot(old_q, records, acc=_dot(q, state), input_precision="ieee")  # [BT, BV]
    sk = tl.dot(old_k, records, acc=_dot(k, state), input_precision="ieee")
    m_new = (o_t < length)[:, None] & m_v[None, :]
    v = tl.load(p_v + o_v[None, :], mask=m_new, other=0.0).to(tl.float32)
    D_TYPE: tl.constexpr = p_ring.dtype.element_ty
    d, stored = _solve(beta[:, None] * (v - sk), score_k, beta, d_scale, length, BT, BV, D_TYPE, INTERPRETED)
    o = tl.dot(tl.trans(score_q), stored, acc=sq + d * kq[:, None], input_precision="ieee")
    o = round_to(tl.where(m_new, o, 0.0), p_o.dtype.element_ty, INTERPRETED)
    tl.store(p_o + o_v[None, :], o, mask=(o_t < T)[:, None] & m_v[None, :])
    tl.store(p_ring + (count + o_t)[:, None] * V + o_v[None, :], stored.to(D_TYPE), mask=m_new)


@triton.jit
def _verify_kernel(
    o_ptr, q_ptr, k_ptr, v_ptr, a_ptr, b_ptr, A_log_ptr, dt_bias_ptr, temporal_ptr,
    ring_d_ptr, ring_k_ptr, ring_g_ptr, write_pos_ptr, slots_ptr, lengths_ptr,
    T: tl.constexpr, H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, V: tl.constexpr, L: tl.constexpr,
    BK: tl.constexpr, BV: tl.constexpr, VS: tl.constexpr, BL: tl.constexpr, BT: tl.constexpr,
    VECTOR_GATE: tl.constexpr, RAW: tl.constexpr, CUMULATIVE: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    NS: tl.constexpr = (V + VS - 1) // VS
    pid = tl.program_id(0)
    i_s = pid % NS
    i_hv = (pid // NS) % HV
    row = (pid // (NS * HV)).to(tl.int64)
    slot = tl.load(slots_ptr + row).to(tl.int64)
    length = tl.where(slot >= 0, tl.load(lengths_ptr + row), 0)
    o_t = tl.arange(0, BT)
    m_t = o_t < length
    p_v = (row * T + o_t)[:, None] * HV * V + i_hv * V
    if length == 0:
        for i_v in range(i_s * VS, i_s * VS + VS, BV):
            o_v = i_v + tl.arange(0, BV)
            m_o = (o_t < T)[:, None] & (o_v < V)[None, :]
            tl.store(o_ptr + p_v + o_v[None, :], tl.full([BT, BV], 0.0, o_ptr.dtype.element_ty), mask=m_o)
        return
    count = tl.load(write_pos_ptr + row)
    o_k = tl.arange(0, BK)
    j = tl.arange(0, BL)
    live = j < count
    p_ring = (slot * HV + i_hv) * L
    p_key = ring_k_ptr + (slot * H + i_hv // (HV // H)) * L * K + o_k[None, :]
    p_old = p_key + (count - 1 - j)[:, None] * K  # newest first
    old = tl.load(p_old, mask=live[:, None] & (o_k < K)[None, :], other=0.0).to(tl.float32)
    q, k, raw, k_norm, beta = _load_window(q_ptr, k_ptr, b_ptr, row, i_hv, length, o_k, T, H, HV, K, BT)
    kq = total(k * q, axis=1)
    keys = round_to(raw if RAW else k, ring_k_ptr.dtype.element_ty, INTERPRETED)
    if (i_s == 0) & (i_hv % (HV // H) == 0):
        tl.store(p_key + (count + o_t)[:, None] * K, keys, mask=m_t[:, None] & (o_k < K)[None, :])
    keys = keys.to(tl.float32)
    rate = tl.exp(tl.load(A_log_ptr + i_hv))
    earlier = o_t[:, None] < o_t[None, :]
    if VECTOR_GATE:
        decay, old, sums, g = _channel_gates(
            old, ring_g_ptr, a_ptr, dt_bias_ptr, p_ring, row, i_hv, count, length, rate, i_s == 0, o_k,
            T, HV, K, BT, CUMULATIVE,
        )  # fmt: skip
        score_q, score_k = _channel_scores(q, k, keys, g, length, BT)
    else:
        decay, old, sums, weight = _head_gates(
            old, ring_g_ptr, a_ptr, dt_bias_ptr, p_ring, row, i_hv, count, length, rate, i_s == 0,
            T, HV, BT, CUMULATIVE,
        )  # fmt: skip
        score_q, score_k = _dot(keys, q) * weight, _dot(keys, k) * weight
    score_q, score_k = tl.where(earlier, score_q, 0.0), tl.where(earlier, score_k, 0.0)
    q, k = q * tl.exp(sums), k * tl.exp(sums)
    old_q, old_k = _dot(q, old), _dot(k, old)  # [BT, BL]
    q, k = q * decay, k * decay
    d_scale = k_norm if RAW else tl.full([BT], 1.0, tl.float32)
    for i_v in range(i_s * VS, i_s * VS + VS, BV):
        o_v = i_v + tl.arange(0, BV)
        p_state = temporal_ptr + (slot * HV + i_hv) * V * K + o_k[None, :]
        _rows_of_v(
            o_ptr + p_v, v_ptr + p_v, p_state, ring_d_ptr + p_ring * V, o_v, o_k < K, count, length,
            q, k, kq, old_q, old_k, score_q, score_k, beta, d_scale, T, K, V, BL, BT, BV, INTERPRETED,
        )  # fmt: skip


def verify(
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
    lengths: Tensor,
    *,
    ring: RingFormat,
    launches: Counter[str] | None = None,
) -> Tensor:
    """As `verify_torch.verify`, for any `ring` format: returns the outputs `[B, T, HV, V]`."""
    sizes, window = check_verify(
        q, k, v, a, b, A_log, dt_bias, temporal, ring_d, ring_k, ring_g, write_pos, slots, lengths
    )
    out = torch.empty_like(v)
    rows_of_v = max(MIN_DOT, ceil_pow2(sizes.V))
    VS = rows_of_v if INTERPRETED else min(rows_of_v, SLICE_V)
    BV = VS if INTERPRETED else min(VS, BLOCK_V)
    launch(
        "verify",
        _verify_kernel,
        (sizes.rows * sizes.heads * triton.cdiv(sizes.V, VS),),
        (out, q, k, v, a, b, A_log, dt_bias, temporal, ring_d, ring_k, ring_g, write_pos, slots, lengths),
        launches,
        num_warps=WARPS,
        enable_fp_fusion=True,
        T=window,
        H=sizes.key_heads,
        HV=sizes.heads,
        K=sizes.K,
        V=sizes.V,
        L=sizes.ring,
        BK=max(MIN_DOT, ceil_pow2(sizes.K)),
        BV=BV,
        VS=VS,
        BL=max(MIN_DOT, ceil_pow2(sizes.ring)),
        BT=max(MIN_DOT, ceil_pow2(window)),
        VECTOR_GATE=sizes.vector_gate,
        RAW=ring.keys == "raw",
        CUMULATIVE=ring.gates == "cumulative",
    )
    return out
