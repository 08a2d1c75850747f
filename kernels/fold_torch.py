"""Fold in plain torch: pending records become state, all layers at once."""

from collections import Counter

import torch
from torch import Tensor

from .checks import check_fold
from .ring import REFERENCE, Gates, RingFormat


def fold(
    temporal: Tensor,
    ring_d: Tensor,
    ring_k: Tensor,
    ring_g: Tensor,
    slots: Tensor,
    counts: Tensor,
    dst: Tensor | None = None,
    *,
    ring: RingFormat = REFERENCE,
    rows: Tensor | None = None,
    launches: Counter[str] | None = None,
) -> None:
    """Set `temporal[:, dst]` to the state of `slots` after the first `counts` records of their rings.

    Every tensor has a leading layers dimension: `temporal [layers, slots, HV, V, K]`, `ring_d [layers, slots,
    HV, L, V]`, `ring_k [layers, slots, H, L, K]`, `ring_g [layers, slots, HV, L]` (GDN) or `[..., L, K]`
    (KDA). `slots`, `counts`, `dst` are int32 `[N]`; `dst` None means `slots`. Slot -1 writes nothing, count 0
    copies, or writes nothing where `dst` is the slot. Rings and cursors stay as they are. `rows` int32 `[1]`,
    where given, is how many of the N entries count, known to the device alone.

    Repeated destinations, and a destination that is another row's source, are the caller's mistake: rows run
    in no particular order. Raises `ValueError` (see `checks`).
    """
    sizes = check_fold(temporal, ring_d, ring_k, ring_g, slots, counts, dst, rows)
    if not sizes.rows:
        return
    if launches is not None:
        launches["fold[torch]"] += 1
    target = slots if dst is None else dst
    writes = (slots >= 0) & (target >= 0) & ((counts > 0) | (slots != target))
    if rows is not None:
        writes &= torch.arange(slots.numel(), device=slots.device) < rows
    index = writes.nonzero().flatten()
    if not index.numel():
        return
    source, count = slots[index].long(), counts[index].long()
    state = temporal[:, source].float()  # [layers, N, HV, V, K]
    added, lost = _replay(ring_d, ring_k, ring_g, source, count, ring.gates)
    decay = torch.exp(lost)[..., None, :] if sizes.vector_gate else torch.exp(lost)[..., None, None]
    temporal[:, target[index].long()] = (state * decay + added).to(temporal.dtype)


def _replay(
    ring_d: Tensor, ring_k: Tensor, ring_g: Tensor, slot: Tensor, count: Tensor, gates: Gates
) -> tuple[Tensor, Tensor]:
    """What the first `count` records add to the state `[layers, N, HV, V, K]`, and their summed gates.

    Newest record first, so that with step gates each gets the sum of those after it without a subtraction.
    The sum starts from -0.0, the neutral element that leaves the sign of a zero alone.
    """
    layers, _, heads, _, V = ring_d.shape
    group = heads // ring_k.shape[2]
    vector = ring_g.ndim == 5
    added = ring_d.new_full((layers, slot.numel(), heads, V, ring_k.shape[-1]), -0.0, dtype=torch.float32)
    lost = ring_g.new_zeros((layers, slot.numel(), heads, *ring_g.shape[4:]))
    for back in range(int(count.max())):
        record = (count - 1 - back).clamp(min=0)
        live = (back < count)[:, None, None]  # [N, 1, 1]
        at = torch.arange(layers, device=slot.device)[:, None], slot, slice(None), record
        d, g = ring_d[at].float(), ring_g[at]  # [layers, N, HV, ...]
        k = ring_k[at].float().repeat_interleave(group, dim=-2)
        weight = torch.exp(lost) if vector else torch.exp(lost)[..., None]
        term = d[..., None] * (weight * k)[..., None, :]
        added = torch.where(live[..., None], added + term, added)
        if gates == "cumulative":
            before = ring_g[*at[:3], (record - 1).clamp(min=0)]
            g = g - torch.where((record > 0).view(-1, *[1] * (g.ndim - 2)), before, 0.0)
        lost = torch.where(live if vector else live[..., 0], lost + g, lost)
    return added, lost
