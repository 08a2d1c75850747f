"""Speculative verify in plain torch: outputs of a window of tokens, whose records are appended."""

from collections import Counter

import torch
from torch import Tensor

from .math_torch import L2_EPS, Token, prepare, read, real_rows
from .ring import REFERENCE, RingFormat
from .window_checks import check_verify


class _Window:
    """Records that the tokens of a window read, in ring order: those pending and those of the window so far.

    Entries that hold nothing yet are zero. What a record has lost is the sum of the gates after it, added up
    as tokens come and never subtracted.
    """

    def __init__(
        self, ring_d: Tensor, ring_k: Tensor, ring_g: Tensor, slot: Tensor, count: Tensor, ring: RingFormat
    ) -> None:
        held = torch.arange(ring_d.shape[-2], device=slot.device) < count[:, None]  # [N, L]
        self.vector = ring_g.ndim == 4

        def take(of: Tensor) -> Tensor:
            rows = of[slot].transpose(1, 2).float()  # [N, L, heads, ...]
            return torch.where(held.view(held.shape + (1,) * (rows.ndim - 2)), rows, 0.0)

        self.d = take(ring_d)  # [N, L, HV, V]
        self.k = take(ring_k)  # [N, L, H, K]
        gates = take(ring_g)  # [N, L, HV] or [N, L, HV, K]
        live = self._like_gate(held, gates)
        if ring.gates == "cumulative":
            last = (count - 1).clamp(min=0).view(-1, *[1] * (gates.ndim - 1))
            self.total = gates.gather(1, last.expand(-1, 1, *gates.shape[2:])).squeeze(1)
            self.lost = torch.where(live, self.total[:, None] - gates, 0.0)
        else:
            after = gates.flip(1).cumsum(1).flip(1)
            self.total = after[:, 0]
            self.lost = torch.where(live, torch.cat([after[:, 1:], torch.zeros_like(after[:, :1])], 1), 0.0)
        self.held = held

    @staticmethod
    def _like_gate(rows: Tensor, gate: Tensor) -> Tensor:
        return rows.view(rows.shape + (1,) * (gate.ndim - rows.ndim))

    def decay(self, g: Tensor) -> None:
        """The gate `g` of a new token decays everything so far."""
        self.total = self.total + g
        self.lost = torch.where(self._like_gate(self.held, self.lost), self.lost + g[:, None], self.lost)

    def read(self, x: Tensor) -> Tensor:
        """Contribution of the records to the state applied to `x [N, HV, K]`; `[N, HV, V]`."""
        weight = torch.exp(self.lost)
        keys = self.k.repeat_interleave(x.shape[1] // self.k.shape[2], dim=2)
        score = ((weight * keys if self.vector else keys) * x[:, None]).sum(-1)  # [N, L, HV]
        score = score if self.vector else score * weight
        return (self.d * score[..., None]).sum(1)

    def append(self, rows: Tensor, at: Tensor, d: Tensor, key: Tensor) -> None:
        """The records of `rows` stand at `at`, as the ring stores them."""
        self.d[rows, at], self.k[rows, at] = d.float(), key.float()
        self.held[rows, at] = True


def _record(
    token: Token, d: Tensor, raw_key: Tensor, ring: RingFormat, ring_d: Tensor, ring_k: Tensor
) -> tuple[Tensor, Tensor]:
    """`d` and the key in the format and the dtypes of the ring."""
    key = token.k_heads
    if ring.keys == "raw":
        key = raw_key.float()
        norm = torch.sqrt((key * key).sum(-1, keepdim=True) + L2_EPS)
        d = d / norm.repeat_interleave(d.shape[-2] // key.shape[-2], dim=-2)
        if ring_d.dtype == torch.float16:  # beside a key of nearly nothing d is past what fp16 holds
            d = d.clamp(-65504.0, 65504.0)
    return d.to(ring_d.dtype), key.to(ring_k.dtype)


def verify(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    temporal: Tensor,
    ring_d: Tensor,
    ring_k: Tensor,
    ring_g: Tensor,
    write_pos: Tensor,
    slots: Tensor,
    lengths: Tensor,
    *,
    ring: RingFormat = REFERENCE,
    launches: Counter[str] | None = None,
) -> Tensor:
    """Return the outputs `[B, T, HV, V]` of a window of tokens per row and append all their records.

    Inputs as in `replay_decode` with T tokens a row: `q, k [B, T, H, K]`, `v [B, T, HV, V]`, `a [B, T, HV]`
    (GDN) or `[B, T, HV, K]` (KDA), `b [B, T, HV]`; `lengths` int32 `[B]` is how many of them a row has, 0 to
    T: the others output zero and write nothing. `write_pos + lengths` is at most L. Reads `temporal` and
    `ring[0:write_pos]`; writes `ring[write_pos : write_pos + lengths]` and leaves `temporal`, the other
    records and `write_pos` alone: the caller advances it by the number of tokens kept, and what stands
    behind is overwritten by the next token. A token reads the checkpoint once, and the records before it as
    the ring stores them, so that a window gives what as many single steps give, to rounding. Raises
    `ValueError` (see `window_checks`).
    """
    sizes, window = check_verify(
        q, k, v, a, b, A_log, dt_bias, temporal, ring_d, ring_k, ring_g, write_pos, slots, lengths
    )
    out = torch.zeros_like(v)
    if not sizes.rows:
        return out
    if launches is not None:
        launches["verify[torch]"] += 1
    rows = real_rows(slots)
    slot, count, length = slots[rows].long(), write_pos[rows].long(), lengths[rows].long()
    state = temporal[slot].float()  # [N, HV, V, K]
    records = _Window(ring_d, ring_k, ring_g, slot, count, ring)
    for t in range(window):
        vector = sizes.vector_gate
        token = prepare(q[rows, t], k[rows, t], v[rows, t], a[rows, t], b[rows, t], A_log, dt_bias, vector)
        records.decay(token.g)
        decay = torch.exp(records.total)
        d = token.beta[..., None] * (token.v - read(state, decay, token.k, vector) - records.read(token.k))
        o = read(state, decay, token.q, vector) + records.read(token.q)
        o = o + d * (token.k * token.q).sum(-1, keepdim=True)
        here = (t < length).nonzero().flatten()
        d, key = _record(token, d, k[rows, t], ring, ring_d, ring_k)
        to, at = slot[here], count[here] + t
        records.append(here, at, d[here], key[here])
        ring_d[to, :, at], ring_k[to, :, at] = d[here], key[here]
        ring_g[to, :, at] = (records.total if ring.gates == "cumulative" else token.g)[here]
        out[rows[here], t] = o[here].to(out.dtype)
    return out
