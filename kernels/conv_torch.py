"""Causal short convolution in plain torch: the window of last inputs lives in the pool."""

from collections import Counter

import torch
from torch import Tensor

from .checks import check_conv_prefill, check_conv_step
from .math_torch import real_rows, sigmoid


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
