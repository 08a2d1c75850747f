# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Triton ships no types, and a kernel has no Python types to annotate.
"""Causal short convolution in Triton: one program per (row or sequence, block of channels)."""

from collections import Counter

import torch
import triton
import triton.language as tl
from torch import Tensor

from .checks import check_conv_prefill, check_conv_step
from .math_triton import INTERPRETED, device_function, launch, round_to, sigmoid
from .window_checks import check_conv_verify

STEP_CHANNELS = 256
PREFILL_TILE = (32, 64)  # tokens, channels


@triton.jit
def _conv_step_kernel(
    y_ptr, x_ptr, weight_ptr, conv_ptr, slots_ptr,
    C: tl.constexpr, W: tl.constexpr, BC: tl.constexpr, BW: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    o_c = tl.program_id(1) * BC + tl.arange(0, BC)
    m_c = o_c < C
    slot = tl.load(slots_ptr + row).to(tl.int64)
    if slot < 0:
        tl.store(y_ptr + row * C + o_c, tl.full([BC], 0.0, y_ptr.dtype.element_ty), mask=m_c)
        return
    p_conv = conv_ptr + slot * C * (W - 1) + o_c * (W - 1)
    x = tl.load(x_ptr + row * C + o_c, mask=m_c, other=0.0).to(tl.float32)
    x = round_to(x, conv_ptr.dtype.element_ty, INTERPRETED).to(tl.float32)
    acc = tl.full([BC], 0.0, tl.float32)
    for tap in tl.static_range(W - 1):
        weight = tl.load(weight_ptr + o_c * W + tap, mask=m_c, other=0.0)
        acc = acc + weight * tl.load(p_conv + tap, mask=m_c, other=0.0).to(tl.float32)
    acc = acc + tl.load(weight_ptr + o_c * W + W - 1, mask=m_c, other=0.0) * x
    y = round_to(acc * sigmoid(acc), y_ptr.dtype.element_ty, INTERPRETED)
    tl.store(y_ptr + row * C + o_c, y, mask=m_c)
    # The window moves by one: every thread has read its inputs before any is overwritten.
    o_w = tl.arange(0, BW)
    p_window = p_conv[:, None] + o_w[None, :]
    later = tl.load(p_window + 1, mask=m_c[:, None] & (o_w < W - 2)[None, :], other=0.0).to(tl.float32)
    window = tl.where((o_w == W - 2)[None, :], x[:, None], later)
    tl.debug_barrier()
    m_window = m_c[:, None] & (o_w < W - 1)[None, :]
    tl.store(p_window, window.to(conv_ptr.dtype.element_ty), mask=m_window)


@device_function
def _input_at(
    x_ptr, conv_ptr, start, slot, position, o_c, mask,
    C: tl.constexpr, W: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """Inputs at `position` of a sequence; a negative one is in the window that the slot held before it."""
    new = tl.load(x_ptr + (start + position) * C + o_c, mask=mask & (position >= 0), other=0.0).to(tl.float32)
    new = round_to(new, conv_ptr.dtype.element_ty, INTERPRETED).to(tl.float32)
    p_old = conv_ptr + (slot * C + o_c) * (W - 1) + position + (W - 1)
    old = tl.load(p_old, mask=mask & (position < 0), other=0.0).to(tl.float32)
    return tl.where(position >= 0, new, old)


@triton.jit
def _conv_prefill_kernel(
    y_ptr, x_ptr, weight_ptr, conv_ptr, slots_ptr, cu_seqlens_ptr,
    C: tl.constexpr, W: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr, BW: tl.constexpr,
    INTERPRETED: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    o_c = tl.program_id(1) * BC + tl.arange(0, BC)
    m_c = o_c < C
    slot = tl.load(slots_ptr + row).to(tl.int64)
    start = tl.load(cu_seqlens_ptr + row).to(tl.int64)
    length = (tl.load(cu_seqlens_ptr + row + 1) - start).to(tl.int32)
    for i_t in range(0, length, BT):
        o_t = i_t + tl.arange(0, BT)
        m_tile = (o_t < length)[:, None] & m_c[None, :]
        acc = tl.full([BT, BC], 0.0, tl.float32)
        if slot >= 0:
            for tap in tl.static_range(W):
                weight = tl.load(weight_ptr + o_c * W + tap, mask=m_c, other=0.0)
                position = (o_t + (tap - (W - 1)))[:, None]
                window = _input_at(
                    x_ptr, conv_ptr, start, slot, position, o_c[None, :], m_tile, C, W, INTERPRETED
                )
                acc = acc + weight[None, :] * window
            acc = acc * sigmoid(acc)
        y = round_to(acc, y_ptr.dtype.element_ty, INTERPRETED)
        tl.store(y_ptr + (start + o_t)[:, None] * C + o_c[None, :], y, mask=m_tile)
    if slot >= 0:
        o_w = tl.arange(0, BW)
        m_window = m_c[:, None] & (o_w < W - 1)[None, :]
        position = (length - (W - 1) + o_w)[None, :]
        window = _input_at(x_ptr, conv_ptr, start, slot, position, o_c[:, None], m_window, C, W, INTERPRETED)
        tl.debug_barrier()  # every thread has read the old window before any overwrites it
        p_window = conv_ptr + (slot * C + o_c)[:, None] * (W - 1) + o_w[None, :]
        tl.store(p_window, window.to(conv_ptr.dtype.element_ty), mask=m_window)


@triton.jit
def _conv_verify_kernel(
    y_ptr, extended_ptr, x_ptr, weight_ptr, conv_ptr, slots_ptr, lengths_ptr,
    T: tl.constexpr, C: tl.constexpr, W: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr,
    INTERPRETED: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    o_c = tl.program_id(1) * BC + tl.arange(0, BC)
    m_c = o_c < C
    slot = tl.load(slots_ptr + row).to(tl.int64)
    length = tl.where(slot >= 0, tl.load(lengths_ptr + row), 0)
    o_t = tl.arange(0, BT)
    m_live = (o_t < length)[:, None] & m_c[None, :]
    acc = tl.full([BT, BC], 0.0, tl.float32)
    if slot >= 0:
        for tap in tl.static_range(W):
            weight = tl.load(weight_ptr + o_c * W + tap, mask=m_c, other=0.0)
            position = (o_t + (tap - (W - 1)))[:, None]
            inputs = _input_at(
                x_ptr, conv_ptr, row * T, slot, position, o_c[None, :], m_live, C, W, INTERPRETED
            )
            acc = acc + weight[None, :] * inputs
        acc = acc * sigmoid(acc)
    y = round_to(acc, y_ptr.dtype.element_ty, INTERPRETED)
    m_tile = (o_t < T)[:, None] & m_c[None, :]
    tl.store(y_ptr + (row * T + o_t)[:, None] * C + o_c[None, :], y, mask=m_tile)
    # [BC, BT] now: the extended window is stored channel by channel, oldest input first.
    p_extended = extended_ptr + (row * C + o_c)[:, None] * (W - 1 + T)
    for i_e in tl.static_range(0, W - 1 + T, BT):
        o_e = i_e + tl.arange(0, BT)
        position = (o_e - (W - 1))[None, :]
        m_held = (o_e < W - 1 + length)[None, :] & m_c[:, None] & (slot >= 0)
        inputs = _input_at(x_ptr, conv_ptr, row * T, slot, position, o_c[:, None], m_held, C, W, INTERPRETED)
        m_store = (o_e < W - 1 + T)[None, :] & m_c[:, None]
        tl.store(p_extended + o_e[None, :], inputs.to(extended_ptr.dtype.element_ty), mask=m_store)


def conv_step(
    x: Tensor, weight: Tensor, conv: Tensor, slots: Tensor, *, launches: Counter[str] | None = None
) -> Tensor:
    """As `conv_torch.conv_step`: shifts one input per row into `conv`, returns `[B, C]`."""
    sizes = check_conv_step(x, weight, conv, slots)
    out = torch.empty_like(x)
    channels = triton.next_power_of_2(sizes.channels)
    BC = channels if INTERPRETED else min(channels, STEP_CHANNELS)
    launch(
        "conv_step",
        _conv_step_kernel,
        (sizes.rows, triton.cdiv(sizes.channels, BC)),
        (out, x, weight, conv, slots),
        launches,
        C=sizes.channels,
        W=sizes.width,
        BC=BC,
        BW=triton.next_power_of_2(sizes.width - 1),
    )
    return out


def conv_prefill(
    x: Tensor,
    weight: Tensor,
    conv: Tensor,
    slots: Tensor,
    cu_seqlens: Tensor,
    *,
    launches: Counter[str] | None = None,
) -> Tensor:
    """As `conv_torch.conv_prefill`: convolves sequences, leaves windows in `conv`, returns `[T, C]`."""
    sizes = check_conv_prefill(x, weight, conv, slots, cu_seqlens)
    out = torch.empty_like(x)
    channels = triton.next_power_of_2(sizes.channels)
    BT, BC = (64, channels) if INTERPRETED else (PREFILL_TILE[0], min(channels, PREFILL_TILE[1]))
    launch(
        "conv_prefill",
        _conv_prefill_kernel,
        (sizes.rows, triton.cdiv(sizes.channels, BC)),
        (out, x, weight, conv, slots, cu_seqlens),
        launches,
        C=sizes.channels,
        W=sizes.width,
        BT=BT,
        BC=BC,
        BW=triton.next_power_of_2(sizes.width - 1),
    )
    return out


def conv_verify(
    x: Tensor,
    weight: Tensor,
    conv: Tensor,
    slots: Tensor,
    lengths: Tensor,
    *,
    launches: Counter[str] | None = None,
) -> tuple[Tensor, Tensor]:
    """As `conv_torch.conv_verify`: returns outputs `[B, T, C]` and extended windows `[B, C, W-1+T]`."""
    sizes = check_conv_verify(x, weight, conv, slots, lengths)
    out = torch.empty_like(x)
    extended = conv.new_empty((sizes.rows, sizes.channels, sizes.width - 1 + sizes.tokens))
    channels = triton.next_power_of_2(sizes.channels)
    BC = channels if INTERPRETED else min(channels, PREFILL_TILE[1])
    launch(
        "conv_verify",
        _conv_verify_kernel,
        (sizes.rows, triton.cdiv(sizes.channels, BC)),
        (out, extended, x, weight, conv, slots, lengths),
        launches,
        T=sizes.tokens,
        C=sizes.channels,
        W=sizes.width,
        BT=triton.next_power_of_2(sizes.tokens),
        BC=BC,
    )
    return out, extended
