"""The float64 cold run: a serial textbook recurrence that shares no code with the kernels or the pool."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional

from replaylife.lifecycle.config import ModelConfig
from replaylife.lifecycle.model.weights import LayerWeights, draw_weights
from replaylife.pool import EMPTY, Fold

_MAX_PREFIXES = 4096
_EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class OracleState:
    """Everything after a prefix, float64: per layer ``temporal [HV, V, K]`` and ``conv [conv_dim, W-1]``.

    ``logits [vocab]`` are those of the prefix's last token. ``min_alpha`` and ``max_alpha`` are the extreme
    decays met so far.
    """

    temporal: tuple[torch.Tensor, ...]
    conv: tuple[torch.Tensor, ...]
    logits: torch.Tensor
    min_alpha: float
    max_alpha: float


class Oracle:
    """Answers "what should the state and the logits be after exactly these tokens?" for any prefix.

    Prefixes are kept (the last few thousand), so that asking for one more token costs one token.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._weights = draw_weights(config).to(torch.device("cpu"), torch.float64)
        self._states: OrderedDict[Fold, OracleState] = OrderedDict({EMPTY: self._initial()})

    def after(self, tokens: Sequence[int]) -> OracleState:
        """Return the state after ``tokens``, fed one by one to an empty state."""
        folds = [EMPTY]
        for token in tokens:
            folds.append(folds[-1].then(token))
        known = next(n for n in range(len(tokens), -1, -1) if folds[n] in self._states)
        state = self._states[folds[known]]
        for n in range(known, len(tokens)):
            state = self._step(state, tokens[n])
            self._remember(folds[n + 1], state)
        return state

    def reply(self, prompt: Sequence[int], length: int) -> tuple[int, ...]:
        """Return the greedy reply of ``length`` tokens to ``prompt``."""
        tokens = list(prompt)
        for _ in range(length):
            tokens.append(int(self.after(tokens).logits.argmax()))
        return tuple(tokens[len(prompt) :])

    def _remember(self, fold: Fold, state: OracleState) -> None:
        self._states[fold] = state
        if len(self._states) > _MAX_PREFIXES:
            oldest = next(fold for fold in self._states if fold.length)
            del self._states[oldest]

    def _initial(self) -> OracleState:
        config = self._config
        conv_dim = 2 * config.heads * config.key_dim + config.value_heads * config.value_dim
        zero = torch.zeros(config.value_heads, config.value_dim, config.key_dim, dtype=torch.float64)
        window = torch.zeros(conv_dim, config.conv_width - 1, dtype=torch.float64)
        return OracleState(
            temporal=(zero,) * config.layers,
            conv=(window,) * config.layers,
            logits=torch.zeros(config.vocab, dtype=torch.float64),
            min_alpha=1.0,
            max_alpha=0.0,
        )

    def _step(self, state: OracleState, token: int) -> OracleState:
        x = self._weights.embedding[token]
        temporal, conv = [], []
        low, high = state.min_alpha, state.max_alpha
        for index, layer in enumerate(self._weights.layers):
            h = _norm(x)
            inputs = torch.cat([state.conv[index], (h @ layer.qkv)[:, None]], dim=1)  # [conv_dim, W]
            mixed = functional.silu((inputs * layer.conv).sum(dim=1))
            alpha = self._decay(h, layer)
            low, high = min(low, float(alpha.min())), max(high, float(alpha.max()))
            o, after = self._mix(state.temporal[index], mixed, alpha, torch.sigmoid(h @ layer.b))
            x = x + _norm(o).flatten() @ layer.out
            temporal.append(after)
            conv.append(inputs[:, 1:])
        return OracleState(tuple(temporal), tuple(conv), _norm(x) @ self._weights.head, low, high)

    def _decay(self, h: torch.Tensor, layer: LayerWeights) -> torch.Tensor:
        a = (h @ layer.a).view(layer.dt_bias.shape) + layer.dt_bias
        rate = layer.A_log.exp().view(-1, *[1] * (a.dim() - 1))
        return torch.exp(-rate * functional.softplus(a)).view(self._config.value_heads, -1)  # [HV, 1 or K]

    def _mix(
        self, S: torch.Tensor, mixed: torch.Tensor, alpha: torch.Tensor, beta: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One token of the delta rule, decay first, as textbooks write it: o [HV, V] and the state after."""
        config = self._config
        keys = config.heads * config.key_dim
        q, k, v = torch.split(mixed, [keys, keys, config.value_heads * config.value_dim])
        group = config.value_heads // config.heads
        q = _unit(q.view(config.heads, -1)).repeat_interleave(group, dim=0) * config.key_dim**-0.5
        k = _unit(k.view(config.heads, -1)).repeat_interleave(group, dim=0)
        decayed = S * alpha[:, None, :]
        d = beta[:, None] * (v.view(config.value_heads, -1) - torch.einsum("hvk,hk->hv", decayed, k))
        after = decayed + torch.einsum("hv,hk->hvk", d, k)
        return torch.einsum("hvk,hk->hv", after, q), after


def _norm(x: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + _EPSILON)


def _unit(x: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt(x.square().sum(dim=-1, keepdim=True) + _EPSILON)
