# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Triton ships no types, and a kernel has no Python types to annotate.
"""Fold in Triton: one launch turns the pending records of all layers into state."""

from collections import Counter

import triton
import triton.language as tl
from torch import Tensor

from .checks import check_fold
from .math_triton import launch, round_to, state_tile


@triton.jit
def _fold_kernel(
    temporal_ptr, ring_d_ptr, ring_k_ptr, ring_g_ptr, slots_ptr, counts_ptr, dst_ptr, num_slots,
    H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, V: tl.constexpr, L: tl.constexpr,
    BK: tl.constexpr, BV: tl.constexpr, VECTOR_GATE: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    row = pid // HV
    i_hv = pid % HV
    slot = tl.load(slots_ptr + row)
    dst = tl.load(dst_ptr + row)
    count = tl.load(counts_ptr + row)
    if (slot < 0) | (dst < 0) | ((count <= 0) & (slot == dst)):
        return
    first = tl.program_id(1).to(tl.int64) * num_slots  # slot 0 of this layer
    source = first + slot
    p_ring = (source * HV + i_hv) * L
    p_ring_k = (source * H + i_hv // (HV // H)) * L * K
    p_from = temporal_ptr + (source * HV + i_hv) * V * K
    p_to = temporal_ptr + ((first + dst) * HV + i_hv) * V * K
    o_k = tl.arange(0, BK)
    m_k = o_k < K
    for i_v in range(0, V, BV):
        o_v = i_v + tl.arange(0, BV)
        m_v = o_v < V
        p_tile = o_v[:, None] * K + o_k[None, :]
        m_tile = m_v[:, None] & m_k[None, :]
        # -0.0 is the neutral element of addition that leaves the sign of a zero alone; `full` would drop it.
        added = tl.full([BV, BK], 0.0, tl.float32) * -1.0
        lost = tl.full([BK if VECTOR_GATE else 1], 0.0, tl.float32)
        for back in range(count):  # newest first: the decay since a record is a sum, never a difference
            record = count - 1 - back
            k = tl.load(ring_k_ptr + p_ring_k + record * K + o_k, mask=m_k, other=0.0).to(tl.float32)
            d = tl.load(ring_d_ptr + (p_ring + record) * V + o_v, mask=m_v, other=0.0).to(tl.float32)
            added = added + d[:, None] * (tl.exp(lost) * k)[None, :]
            if VECTOR_GATE:
                lost = lost + tl.load(ring_g_ptr + (p_ring + record) * K + o_k, mask=m_k, other=0.0)
            else:
                lost = lost + tl.load(ring_g_ptr + p_ring + record)
        state = tl.load(p_from + p_tile, mask=m_tile, other=0.0).to(tl.float32)
        state = state * tl.exp(lost)[None, :] + added
        tl.store(p_to + p_tile, round_to(state, temporal_ptr.dtype.element_ty, INTERPRETED), mask=m_tile)


def fold(
    temporal: Tensor,
    ring_d: Tensor,
    ring_k: Tensor,
    ring_g: Tensor,
    slots: Tensor,
    counts: Tensor,
    dst: Tensor | None = None,
    *,
    launches: Counter[str] | None = None,
) -> None:
    """As `fold_torch.fold`: writes `temporal[:, dst]` and nothing else, in one launch for all layers."""
    sizes = check_fold(temporal, ring_d, ring_k, ring_g, slots, counts, dst)
    BV, BK = state_tile(sizes.V, sizes.K)
    launch(
        "fold",
        _fold_kernel,
        (sizes.rows * sizes.heads, sizes.layers),
        (temporal, ring_d, ring_k, ring_g, slots, counts, slots if dst is None else dst, temporal.shape[1]),
        launches,
        H=sizes.key_heads,
        HV=sizes.heads,
        K=sizes.K,
        V=sizes.V,
        L=sizes.ring,
        BK=BK,
        BV=BV,
        VECTOR_GATE=sizes.vector_gate,
    )
