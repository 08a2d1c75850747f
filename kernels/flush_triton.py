# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Triton ships no types, and a kernel has no Python types to annotate.
"""The rows that are due for a fold, as a dense list made on the device: one small program."""

from collections import Counter

import torch
import triton
import triton.language as tl
from torch import Tensor

from .checks import check_flush_list
from .math_triton import launch


@triton.jit(do_not_specialize=["rows", "ring"])
def _flush_list_kernel(
    listed_ptr, counts_ptr, length_ptr, slots_ptr, cursors_ptr, force_ptr, rows, ring,
    BLOCK: tl.constexpr, INTERPRETED: tl.constexpr,  # noqa: ARG001  # every launch passes it
):  # fmt: skip
    o = tl.arange(0, BLOCK)
    slot = tl.load(slots_ptr + o, mask=o < rows, other=-1)
    count = tl.load(cursors_ptr + o, mask=o < rows, other=0)
    forced = tl.load(force_ptr + o, mask=o < rows, other=0) != 0
    due = (slot >= 0) & (count > 0) & ((count >= ring) | forced)
    place = tl.cumsum(due.to(tl.int32), axis=0) - 1
    tl.store(listed_ptr + place, slot, mask=due)
    tl.store(counts_ptr + place, count, mask=due)
    tl.store(length_ptr, tl.sum(due.to(tl.int32), axis=0))


def flush_list(
    slots: Tensor, cursors: Tensor, force: Tensor, ring: int, *, launches: Counter[str] | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """As `flush_torch.flush_list`."""
    check_flush_list(slots, cursors, force)
    listed, counts = torch.full_like(slots, -1), torch.zeros_like(cursors)
    length = torch.zeros(1, dtype=torch.int32, device=slots.device)
    launch(
        "flush_list",
        _flush_list_kernel,
        (min(1, slots.numel()),),
        (listed, counts, length, slots, cursors, force, slots.numel(), ring),
        launches,
        BLOCK=triton.next_power_of_2(max(1, slots.numel())),
    )
    return listed, counts, length
