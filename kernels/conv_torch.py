"""Causal short convolution in plain torch: the window of last inputs lives in the pool."""

from collections import Counter

import torch
from torch import Tensor

from .checks import check_conv_prefill, check_conv_step
from .math_torch import real_rows, sigmoid
from .window_checks import check_conv_at, check_conv_verify


def _convolve(window: Tensor, weight: Tensor) -> Tensor:
    """SiLU of the weighted sum over `window [..., C, W]`, oldest tap first, fp32 `[..., C]`."""
    total = torch.zeros_like(window[..., 0])
    for tap in range(weight.shape[1]):
        total = total + weight[:, tap] * window[..., tap]
    return total * sigmoid(total)


def conv_step(
    x: Tensor, weight: Tensor, conv: Tensor, slots: Tensor, *, launches: Counter[str] | None = None
) -> Tensor:
    """Convolve one input per row, `x [B, C]`, and shift it into `conv [slots, C, W-1]` (oldest first).

    `weight` fp32 `[C, W]`, `slots` int32 `[B]`, distinct except for -1, whose rows write nothing and output
    zero. The input is rounded to the dtype of `conv` before it is used, so that where a chunk ends changes
    nothing. Returns `[B, C]` in the dtype of `x`. Raises `ValueError` (see `checks`).
    """
    sizes = check_conv_step(x, weight, conv, slots)
    out = torch.zeros_like(x)
    if not sizes.rows:
        return out
    if launches is not None:
        launches["conv_step[torch]"] += 1
    rows = real_rows(slots)
    slot = slots[rows].long()
    window = torch.cat([conv[slot], x[rows].to(conv.dtype)[..., None]], dim=-1)  # [N, C, W]
    conv[slot] = window[..., 1:]
    out[rows] = _convolve(window.float(), weight).to(out.dtype)
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
    """Convolve packed sequences, `x [T, C]`; sequence n is `[cu_seqlens[n], cu_seqlens[n+1])`.

    Starts from `conv[slots[n]]` and leaves the last W-1 inputs there, older ones included where the sequence
    is shorter. The same arithmetic per token as `conv_step`. Sequences with slot -1 write nothing and output
    zero. Returns `[T, C]` in the dtype of `x`. Raises `ValueError` (see `checks`).
    """
    sizes = check_conv_prefill(x, weight, conv, slots, cu_seqlens)
    out = torch.zeros_like(x)
    if not sizes.rows:
        return out
    if launches is not None:
        launches["conv_prefill[torch]"] += 1
    past = sizes.width - 1
    bounds = cu_seqlens.tolist()
    for row, slot in enumerate(slots.tolist()):
        start, end = bounds[row], bounds[row + 1]
        if slot < 0 or start == end:
            continue
        inputs = torch.cat([conv[slot], x[start:end].to(conv.dtype).T], dim=-1)  # [C, W-1+len]
        window = inputs.unfold(-1, sizes.width, 1).transpose(0, 1)  # [len, C, W]
        out[start:end] = _convolve(window.float(), weight).to(out.dtype)
        conv[slot] = inputs[:, inputs.shape[1] - past :]
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
    """Convolve a window of inputs per row, `x [B, T, C]`, and leave `conv` where it is.

    `lengths` int32 `[B]` is how many of its T inputs a row has. Returns the outputs `[B, T, C]` in the dtype
    of `x`, with the arithmetic of `conv_step`, and the extended window `[B, C, W-1+T]` in the dtype of
    `conv`: the W-1 inputs before the window and those of it, oldest first; `conv_at` takes any position of
    it. Inputs past a row's length, and rows with slot -1, output zero and extend by zeros. Raises
    `ValueError` (see `window_checks`).
    """
    sizes = check_conv_verify(x, weight, conv, slots, lengths)
    out = torch.zeros_like(x)
    extended = conv.new_zeros((sizes.rows, sizes.channels, sizes.width - 1 + sizes.tokens))
    if not sizes.rows:
        return out, extended
    if launches is not None:
        launches["conv_verify[torch]"] += 1
    rows = real_rows(slots)
    live = torch.arange(sizes.tokens, device=x.device) < lengths[rows, None]  # [N, T]
    new = torch.where(live[..., None], x[rows].to(conv.dtype), 0.0).transpose(1, 2)  # [N, C, T]
    inputs = torch.cat([conv[slots[rows].long()], new], dim=-1)
    window = inputs.unfold(-1, sizes.width, 1).transpose(1, 2)  # [N, T, C, W]
    out[rows] = torch.where(live[..., None], _convolve(window.float(), weight), 0.0).to(out.dtype)
    extended[rows] = inputs
    return out, extended


def conv_at(extended: Tensor, width: int, kept: Tensor) -> Tensor:
    """The W-1 inputs that the next token convolves with, after `kept` tokens of a window.

    `extended` is `[B, C, W-1+T]` as `conv_verify` returns it, or several stacked to `[layers, B, C, W-1+T]`,
    `width` is W, and `kept` int32 `[B]` runs from 0 (the window before) to the row's length: past that stand
    zeros, not inputs. Returns `[B, C, W-1]` or `[layers, B, C, W-1]`, contiguous. One function for every
    backend: it moves a few numbers, once a window. Raises `ValueError` (see `window_checks`).
    """
    check_conv_at(extended, width, kept)
    index = kept.long()[:, None, None] + torch.arange(width - 1, device=extended.device)  # [B, 1, W-1]
    return extended.gather(-1, index.expand(*extended.shape[:-1], width - 1))
