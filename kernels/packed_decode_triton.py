# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Triton ships no types, and a kernel has no Python types to annotate.
"""Packed decode in Triton: one program per (row, value head) reads and writes its state tile by tile."""

from collections import Counter

import torch
import triton
import triton.language as tl
from torch import Tensor

from .checks import check_packed_decode
from .math_triton import launch, load_token, round_to, state_tile, total


@triton.jit
def _packed_decode_kernel(
    o_ptr, q_ptr, k_ptr, v_ptr, a_ptr, b_ptr, A_log_ptr, dt_bias_ptr, temporal_ptr, slots_ptr,
    H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
    BK: tl.constexpr, BV: tl.constexpr, ALL_V: tl.constexpr, VECTOR_GATE: tl.constexpr,
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
    q, k, kq, g, beta = load_token(
        q_ptr, k_ptr, a_ptr, b_ptr, A_log_ptr, dt_bias_ptr, row, i_hv // (HV // H), i_hv,
        H, HV, K, BK, VECTOR_GATE,
    )  # fmt: skip
    alpha = tl.exp(g)
    o_k = tl.arange(0, BK)
    p_state = temporal_ptr + (slot * HV + i_hv) * V * K
    for i_v in range(0, V, BV):
        o_v = i_v + tl.arange(0, BV)
        m_v = o_v < V
        p_tile = p_state + o_v[:, None] * K + o_k[None, :]
        m_tile = m_v[:, None] & (o_k < K)[None, :]
        state = tl.load(p_tile, mask=m_tile, other=0.0).to(tl.float32)  # [BV, BK]
        if VECTOR_GATE:
            sk = total(state * (alpha * k)[None, :], axis=1)
            sq = total(state * (alpha * q)[None, :], axis=1)
            state = state * alpha[None, :]
        else:
            sk = alpha * total(state * k[None, :], axis=1)
            sq = alpha * total(state * q[None, :], axis=1)
            state = state * alpha
        d = beta * (tl.load(v_ptr + p_v + o_v, mask=m_v, other=0.0).to(tl.float32) - sk)
        o = round_to(sq + d * kq, o_ptr.dtype.element_ty, INTERPRETED)
        tl.store(o_ptr + p_v + o_v, o, mask=m_v)
        state = state + d[:, None] * k[None, :]
        tl.store(p_tile, round_to(state, temporal_ptr.dtype.element_ty, INTERPRETED), mask=m_tile)


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
    """As `packed_decode_torch.packed_decode`: advances `temporal`, returns the output `[B, HV, V]`."""
    sizes = check_packed_decode(q, k, v, a, b, A_log, dt_bias, temporal, slots)
    out = torch.empty_like(v)
    BV, BK = state_tile(sizes.V, sizes.K)
    launch(
        "packed_decode",
        _packed_decode_kernel,
        (sizes.rows * sizes.heads,),
        (out, q, k, v, a, b, A_log, dt_bias, temporal, slots),
        launches,
        H=sizes.key_heads,
        HV=sizes.heads,
        K=sizes.K,
        V=sizes.V,
        BK=BK,
        BV=BV,
        ALL_V=triton.next_power_of_2(sizes.V),
        VECTOR_GATE=sizes.vector_gate,
    )
    return out
