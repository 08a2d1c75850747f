# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Triton ships no types, and a kernel has no Python types to annotate.
"""Fold at memory speed: the pending records of many slots, all layers, one launch.

A fold is a matrix product with an inner side of at most L, so it asks for arithmetic in fp32 and for bytes:
the state once in, once out. Programs walk over the tiles of a list whose length may be known to the device
alone, so that a captured graph folds whatever is due without launching a program for every row that is not.
"""

from collections import Counter

import torch
import triton
import triton.language as tl
from torch import Tensor

from .checks import check_fold
from .math_triton import INTERPRETED, device_function, launch, round_to, total
from .ring import RingFormat
from .tiles import INTERPRETED_FOLD, FoldTile, key_of, table

PROGRAMS_PER_MULTIPROCESSOR = 32


@device_function
def head_weights(keys, p_gate, count, CUMULATIVE: tl.constexpr):
    """GDN: decay of the checkpoint, and keys `[BL, BK]`, newest first, times what each has lost since."""
    j = tl.arange(0, keys.shape[0])
    if CUMULATIVE:
        g = tl.load(p_gate + count - 1, mask=count > 0, other=0.0)
        gates = tl.load(p_gate + count - 1 - j, mask=j < count, other=0.0)
        return tl.exp(g), keys.to(tl.float32) * tl.exp(g - gates)[:, None]
    # Step: those of the token after each record; the newest has none, the first token's stands apart.
    g = tl.load(p_gate, mask=count > 0, other=0.0)
    gates = tl.load(p_gate + count - j, mask=(j > 0) & (j < count), other=0.0)
    return tl.exp(g + total(gates, axis=0)), keys.to(tl.float32) * tl.exp(tl.cumsum(gates, axis=0))[:, None]


@device_function
def channel_weights(keys, p_gate, m_k, count, K: tl.constexpr, CUMULATIVE: tl.constexpr):
    """As `head_weights` for KDA; the decay is `[1, BK]`."""
    j = tl.arange(0, keys.shape[0])
    if CUMULATIVE:
        g = tl.load(p_gate + (count - 1) * K, mask=m_k & (count > 0), other=0.0)
        m_gate = (j < count)[:, None] & m_k[None, :]
        gates = tl.load(p_gate[None, :] + (count - 1 - j)[:, None] * K, mask=m_gate, other=0.0)
        return tl.exp(g)[None, :], keys.to(tl.float32) * tl.exp(g[None, :] - gates)
    g = tl.load(p_gate, mask=m_k & (count > 0), other=0.0)
    m_gate = ((j > 0) & (j < count))[:, None] & m_k[None, :]
    gates = tl.load(p_gate[None, :] + (count - j)[:, None] * K, mask=m_gate, other=0.0)
    return tl.exp(g + total(gates, axis=0))[None, :], keys.to(tl.float32) * tl.exp(tl.cumsum(gates, axis=0))


@triton.jit(do_not_specialize=["num_slots", "rows", "layers", "stride"])
def _tuned_fold_kernel(
    temporal_ptr, ring_d_ptr, ring_k_ptr, ring_g_ptr, slots_ptr, counts_ptr, dst_ptr, rows_ptr,
    num_slots, rows, layers, stride,
    H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, V: tl.constexpr, L: tl.constexpr,
    BK: tl.constexpr, BV: tl.constexpr, VS: tl.constexpr, BL: tl.constexpr, VECTOR_GATE: tl.constexpr,
    CUMULATIVE: tl.constexpr, LISTED: tl.constexpr, STAGES: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    NS: tl.constexpr = (V + VS - 1) // VS
    NK: tl.constexpr = (K + BK - 1) // BK
    j = tl.arange(0, BL)
    if LISTED:
        rows = tl.load(rows_ptr)
    for tile in range(tl.program_id(0), rows * layers * HV * NS * NK, stride):
        i_k = tile % NK
        i_s = (tile // NK) % NS
        i_hv = (tile // (NK * NS)) % HV
        row = (tile // (NK * NS * HV)) % rows
        first = (tile // (NK * NS * HV * rows)).to(tl.int64) * num_slots  # slot 0 of this layer
        slot = tl.load(slots_ptr + row)
        dst = tl.load(dst_ptr + row)
        count = tl.load(counts_ptr + row)
        if (slot >= 0) & (dst >= 0) & ((count > 0) | (slot != dst)):
            source = first + slot
            p_ring = (source * HV + i_hv) * L
            p_ring_k = (source * H + i_hv // (HV // H)) * L * K
            o_k = i_k * BK + tl.arange(0, BK)
            m_k = o_k < K
            record = count - 1 - j  # newest first
            live = j < count
            m_ring = live[:, None] & m_k[None, :]
            keys = tl.load(ring_k_ptr + p_ring_k + record[:, None] * K + o_k[None, :], mask=m_ring, other=0.0)
            if VECTOR_GATE:
                p_gate = ring_g_ptr + p_ring * K + o_k
                decay, weighted = channel_weights(keys, p_gate, m_k, count, K, CUMULATIVE)
            else:
                decay, weighted = head_weights(keys, ring_g_ptr + p_ring, count, CUMULATIVE)
            p_from = temporal_ptr + (source * HV + i_hv) * V * K
            p_to = temporal_ptr + ((first + dst) * HV + i_hv) * V * K
            for i_v in tl.range(i_s * VS, i_s * VS + VS, BV, num_stages=STAGES):
                o_v = i_v + tl.arange(0, BV)
                m_v = o_v < V
                p_tile = o_v[:, None] * K + o_k[None, :]
                m_tile = m_v[:, None] & m_k[None, :]
                state = tl.load(p_from + p_tile, mask=m_tile, other=0.0).to(tl.float32)
                p_d = ring_d_ptr + (p_ring + record)[None, :] * V + o_v[:, None]
                d = tl.load(p_d, mask=live[None, :] & m_v[:, None], other=0.0).to(tl.float32)  # [BV, BL]
                state = tl.dot(d, weighted, acc=state * decay, input_precision="ieee")
                state = round_to(state, temporal_ptr.dtype.element_ty, INTERPRETED)
                tl.store(p_to + p_tile, state, mask=m_tile)


def fold(
    temporal: Tensor,
    ring_d: Tensor,
    ring_k: Tensor,
    ring_g: Tensor,
    slots: Tensor,
    counts: Tensor,
    dst: Tensor | None = None,
    *,
    ring: RingFormat,
    rows: Tensor | None = None,
    tile: FoldTile | None = None,
    launches: Counter[str] | None = None,
) -> None:
    """As `fold_torch.fold`, for any `ring` format; `tile` None takes the shipped table's."""
    sizes = check_fold(temporal, ring_d, ring_k, ring_g, slots, counts, dst, rows)
    if tile is None:
        key = key_of(sizes.vector_gate, sizes.ring, temporal.dtype)
        tile = INTERPRETED_FOLD if INTERPRETED else table().fold(key)
    tile = tile.within(sizes.K, sizes.V)
    tiles = triton.cdiv(sizes.V, tile.VS) * triton.cdiv(sizes.K, tile.BK)
    programs = min(sizes.rows * sizes.layers * sizes.heads * tiles, _most_programs(temporal.device))
    launch(
        "fold",
        _tuned_fold_kernel,
        (programs,),
        (temporal, ring_d, ring_k, ring_g, slots, counts, slots if dst is None else dst,
         slots if rows is None else rows, temporal.shape[1], sizes.rows, sizes.layers, programs),
        launches,
        num_warps=tile.num_warps,
        enable_fp_fusion=True,
        H=sizes.key_heads,
        HV=sizes.heads,
        K=sizes.K,
        V=sizes.V,
        L=sizes.ring,
        BK=tile.BK,
        BV=tile.BV,
        VS=tile.VS,
        BL=max(16, triton.next_power_of_2(sizes.ring)),
        VECTOR_GATE=sizes.vector_gate,
        CUMULATIVE=ring.gates == "cumulative",
        LISTED=rows is not None,
        STAGES=tile.num_stages,
    )  # fmt: skip


def _most_programs(device: torch.device) -> int:
    """As many programs as keep a device busy; the interpreter runs them one by one, so one does."""
    if INTERPRETED:
        return 1
    return PROGRAMS_PER_MULTIPROCESSOR * torch.cuda.get_device_properties(device).multi_processor_count
