"""Float64 reference: the recurrences as the papers write them, one token after another.

Independent of the product on purpose: other order of operations, other form, no shared code.
"""

import math

import torch

D = torch.float64


def token_terms(q, k, a, b, A_log, dt_bias, group):
    """Query, key, decay and beta of one token, float64, per value head."""
    q, k, a, b, A_log, dt_bias = (x.detach().cpu().to(D) for x in (q, k, a, b, A_log, dt_bias))
    q = q / (q.pow(2).sum(-1, keepdim=True) + 1e-6).sqrt() / math.sqrt(q.shape[-1])
    k = k / (k.pow(2).sum(-1, keepdim=True) + 1e-6).sqrt()
    x = a + dt_bias
    softplus = torch.logaddexp(x, torch.zeros_like(x))
    rate = A_log.exp()
    g = -(rate[:, None] if a.ndim == 2 else rate) * softplus
    decay = g.exp() if a.ndim == 2 else g.exp()[:, None]
    return (
        q.repeat_interleave(group, 0),
        k.repeat_interleave(group, 0),
        decay,  # [HV, K] or [HV, 1]
        1 / (1 + (-b).exp()),
    )


def step(state, q, k, v, a, b, A_log, dt_bias):
    """One token: decay, correct, write, read. `state` float64 `[HV, V, K]`; returns output and new state."""
    group = v.shape[0] // k.shape[0]
    q, k, decay, beta = token_terms(q, k, a, b, A_log, dt_bias, group)
    state = state * decay[:, None, :]
    delta = beta[:, None] * (v.detach().cpu().to(D) - torch.einsum("hvk,hk->hv", state, k))
    state = state + torch.einsum("hv,hk->hvk", delta, k)
    return torch.einsum("hvk,hk->hv", state, q), state


def run(state, tokens, A_log, dt_bias):
    """All tokens of one sequence, each tensor `[T, ...]`; returns outputs `[T, HV, V]` and the last state."""
    state = state.detach().cpu().to(D)
    outs = []
    for i in range(tokens["v"].shape[0]):
        out, state = step(state, **{name: x[i] for name, x in tokens.items()}, A_log=A_log, dt_bias=dt_bias)
        outs.append(out)
    return torch.stack(outs), state


def convolve(window, x, weight):
    """Causal convolution with SiLU of `x [T, C]` after the inputs `window [C, W-1]`; `[T, C]` float64."""
    inputs = torch.cat([window.cpu().to(D), x.cpu().to(D).T], dim=1)
    taps = weight.cpu().to(D)
    outs = []
    for t in range(x.shape[0]):
        y = (inputs[:, t : t + taps.shape[1]] * taps).sum(1)
        outs.append(y / (1 + (-y).exp()))
    return torch.stack(outs)
