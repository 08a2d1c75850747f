# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Triton ships no types, and a kernel has no Python types to annotate.
"""KV-buffer replay in Triton: parallel over layers, rows, heads and rows of the state, serial over tokens."""

from collections import Counter

import triton
import triton.language as tl
from torch import Tensor

from .math_triton import (
    INTERPRETED,
    device_function,
    exp_of_log_decay,
    launch,
    round_to,
    sigmoid,
    softplus,
    state_tile,
    total,
)
from .replay_decode_tuned_triton import inverse_norm
from .window_checks import check_kv_replay

MAX_ROWS = 32  # of V a program keeps in registers, all of K beside them


@device_function
def _advance(
    state, k_ptr, v_ptr, a_ptr, b_ptr, A_log_ptr, dt_bias_ptr, token, layer, i_hv, o_v, o_k,
    H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, V: tl.constexpr, VECTOR_GATE: tl.constexpr,
    INTERPRETED: tl.constexpr,
):  # fmt: skip
    """The state tile `[BV, BK]` after one more token, whose place in the buffers is `token`."""
    m_k = o_k < K
    k = tl.load(k_ptr + (token * H + i_hv // (HV // H)) * K + o_k, mask=m_k, other=0.0).to(tl.float32)
    k = k * inverse_norm(total(k * k, axis=0))
    v = tl.load(v_ptr + (token * HV + i_hv) * V + o_v, mask=o_v < V, other=0.0).to(tl.float32)
    head = layer * HV + i_hv
    rate = tl.exp(tl.load(A_log_ptr + head))
    beta = sigmoid(tl.load(b_ptr + token * HV + i_hv).to(tl.float32), False)
    if VECTOR_GATE:
        x = tl.load(a_ptr + (token * HV + i_hv) * K + o_k, mask=m_k, other=0.0).to(tl.float32)
        x = x + tl.load(dt_bias_ptr + head * K + o_k, mask=m_k, other=0.0)
        state = state * exp_of_log_decay(-rate * softplus(x, False), INTERPRETED)[None, :]
    else:
        x = tl.load(a_ptr + token * HV + i_hv).to(tl.float32) + tl.load(dt_bias_ptr + head)
        state = state * tl.exp(-rate * softplus(x, False))
    d = beta * (v - total(state * k[None, :], axis=1))
    return state + d[:, None] * k[None, :]


@triton.jit(do_not_specialize=["num_slots", "rows"])
def _kv_replay_kernel(
    temporal_ptr, k_ptr, v_ptr, a_ptr, b_ptr, A_log_ptr, dt_bias_ptr, slots_ptr, counts_ptr, dst_ptr,
    num_slots, rows,
    T: tl.constexpr, H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
    BK: tl.constexpr, BV: tl.constexpr, VECTOR_GATE: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    NV: tl.constexpr = (V + BV - 1) // BV
    pid = tl.program_id(0)
    i_v = pid % NV
    i_hv = (pid // NV) % HV
    row = (pid // (NV * HV)) % rows
    layer = (pid // (NV * HV * rows)).to(tl.int64)
    slot = tl.load(slots_ptr + row)
    dst = tl.load(dst_ptr + row)
    count = tl.load(counts_ptr + row)
    if (slot >= 0) & (dst >= 0) & ((count > 0) | (slot != dst)):
        o_v = i_v * BV + tl.arange(0, BV)
        o_k = tl.arange(0, BK)
        p_tile = o_v[:, None] * K + o_k[None, :]
        m_tile = (o_v < V)[:, None] & (o_k < K)[None, :]
        source = layer * num_slots + slot
        p_from = temporal_ptr + (source * HV + i_hv) * V * K
        state = tl.load(p_from + p_tile, mask=m_tile, other=0.0).to(tl.float32)
        for t in range(count):
            state = _advance(
                state, k_ptr, v_ptr, a_ptr, b_ptr, A_log_ptr, dt_bias_ptr, source * T + t, layer, i_hv,
                o_v, o_k, H, HV, K, V, VECTOR_GATE, INTERPRETED,
            )  # fmt: skip
        p_to = temporal_ptr + ((layer * num_slots + dst) * HV + i_hv) * V * K
        tl.store(p_to + p_tile, round_to(state, temporal_ptr.dtype.element_ty, INTERPRETED), mask=m_tile)


def kv_replay(
    temporal: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    slots: Tensor,
    counts: Tensor,
    dst: Tensor | None = None,
    *,
    launches: Counter[str] | None = None,
) -> None:
    """As `kv_replay_torch.kv_replay`: all layers in one launch."""
    sizes = check_kv_replay(temporal, k, v, a, b, A_log, dt_bias, slots, counts, dst)
    BV, BK = state_tile(sizes.V, sizes.K)
    BV = BV if INTERPRETED else min(BV, MAX_ROWS)
    launch(
        "kv_replay",
        _kv_replay_kernel,
        (sizes.layers * sizes.rows * sizes.heads * triton.cdiv(sizes.V, BV),),
        (temporal, k, v, a, b, A_log, dt_bias, slots, counts, slots if dst is None else dst,
         temporal.shape[1], sizes.rows),
        launches,
        enable_fp_fusion=True,
        T=sizes.tokens,
        H=sizes.key_heads,
        HV=sizes.heads,
        K=sizes.K,
        V=sizes.V,
        BK=BK,
        BV=BV,
        VECTOR_GATE=sizes.vector_gate,
    )  # fmt: skip
