"""The rows that are due for a fold, as a dense list made on the device."""

from collections import Counter

import torch
from torch import Tensor

from .checks import check_flush_list


def flush_list(
    slots: Tensor, cursors: Tensor, force: Tensor, ring: int, *, launches: Counter[str] | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `(slots, counts, rows)` for `fold`: the due rows first, in order; `rows` `[1]` is how many.

    `slots`, `cursors`, `force` are int32 `[B]`: the slot of each row (-1 is padding), the records it holds
    after this step's append, and whether it must be folded however few they are (a track point). A row is
    due with a full ring of `ring` records, or with any record when forced. Entries past `rows` carry slot -1.
    Nothing is read back, so the list may change under a captured graph. Raises `ValueError`.
    """
    check_flush_list(slots, cursors, force)
    if not slots.numel():
        return slots.clone(), cursors.clone(), slots.new_zeros(1)
    if launches is not None:
        launches["flush_list[torch]"] += 1
    due = (slots >= 0) & (cursors > 0) & ((cursors >= ring) | (force != 0))
    place = torch.where(due, torch.cumsum(due, 0) - 1, slots.numel())  # those not due land past the end
    listed = slots.new_full((slots.numel() + 1,), -1).scatter(0, place, slots)
    counts = cursors.new_zeros(slots.numel() + 1).scatter(0, place, cursors)
    return listed[:-1], counts[:-1], due.sum(dtype=torch.int32).view(1)
