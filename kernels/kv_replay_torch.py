"""KV-buffer replay in plain torch: raw inputs of pending tokens become state, one token after another."""

from collections import Counter

import torch
from torch import Tensor

from .math_torch import log_decay, normalise, read, sigmoid
from .window_checks import check_kv_replay


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
    """Set `temporal[:, dst]` to the state of `slots` after the first `counts` tokens of their buffers.

    The alternative to a ring of `d`: a buffer per slot keeps the inputs of up to T pending tokens as they
    came, `k [layers, slots, T, H, K]`, `v [layers, slots, T, HV, V]`, `a [layers, slots, T, HV]` (GDN) or
    `[..., HV, K]` (KDA), `b [layers, slots, T, HV]`, in any float dtype, with fp32 `A_log [layers, HV]` and
    `dt_bias [layers, HV]` or `[layers, HV, K]`. `d` of a token needs the state before it, so the tokens run
    one after another, where `fold` takes them at once; layers are independent and share one launch in both.
    `slots`, `counts`, `dst` and what is left alone are as in `fold`: slot -1 writes nothing, count 0 copies.
    The state is kept in fp32 between the tokens and rounded once. Raises `ValueError` (see `window_checks`).
    """
    sizes = check_kv_replay(temporal, k, v, a, b, A_log, dt_bias, slots, counts, dst)
    if not sizes.rows:
        return
    if launches is not None:
        launches["kv_replay[torch]"] += 1
    target = slots if dst is None else dst
    index = ((slots >= 0) & (target >= 0) & ((counts > 0) | (slots != target))).nonzero().flatten()
    if not index.numel():
        return
    source, count = slots[index].long(), counts[index].long()
    group = sizes.heads // sizes.key_heads
    states = []
    for layer in range(sizes.layers):
        state = temporal[layer, source].float()  # [N, HV, V, K]
        for t in range(int(count.max())):
            key = normalise(k[layer, source, t]).repeat_interleave(group, dim=-2)
            alpha = torch.exp(log_decay(a[layer, source, t], A_log[layer], dt_bias[layer], sizes.vector_gate))
            beta = sigmoid(b[layer, source, t].float())[..., None]
            d = beta * (v[layer, source, t].float() - read(state, alpha, key, sizes.vector_gate))
            decay = alpha[..., None, :] if sizes.vector_gate else alpha[..., None, None]
            after = state * decay + d[..., None] * key[..., None, :]
            state = torch.where((t < count)[:, None, None, None], after, state)
        states.append(state)
    temporal[:, target[index].long()] = torch.stack(states).to(temporal.dtype)
