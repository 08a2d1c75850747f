"""The float64 cold run: beside a textbook in numpy, and independent of how it is asked."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch

from replaylife.lifecycle.config import Gate, ModelConfig
from replaylife.lifecycle.model import oracle as module
from replaylife.lifecycle.model.oracle import Oracle, OracleState
from replaylife.lifecycle.model.weights import Weights, draw_weights

TOKENS = np.random.default_rng(3).integers(0, 256, 200).tolist()


def _textbook(config: ModelConfig, tokens: list[int], alpha_of: Callable = np.exp) -> list[np.ndarray]:
    """The network token by token: logits of the last one, then temporal and conv of each layer."""
    model = draw_weights(config)
    H, HV, K, V = config.heads, config.value_heads, config.key_dim, config.value_dim
    rms = lambda x: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)  # noqa: E731
    unit = lambda x: x / np.sqrt((x**2).sum(-1, keepdims=True) + 1e-6)  # noqa: E731
    layers = [{f: getattr(w, f).double().numpy() for f in w.__slots__} for w in model.layers]
    S = np.zeros((len(layers), HV, V, K))
    window = np.zeros((len(layers), 2 * H * K + HV * V, config.conv_width - 1))
    for token in tokens:
        x = model.embedding[token].double().numpy()
        for i, w in enumerate(layers):
            h = rms(x)
            taps = np.concatenate([window[i], (h @ w["qkv"])[:, None]], axis=1)
            window[i] = taps[:, 1:]
            y = (taps * w["conv"]).sum(1)
            q, k, v = np.split(y / (1 + np.exp(-y)), [H * K, 2 * H * K])
            soft = np.log1p(np.exp((h @ w["a"]).reshape(HV, -1) + w["dt_bias"].reshape(HV, -1)))
            alpha = np.broadcast_to(alpha_of(-np.exp(w["A_log"])[:, None] * soft), (HV, K))
            beta = 1 / (1 + np.exp(-(h @ w["b"])))
            o = np.zeros((HV, V))
            for n in range(HV):
                key, query = (unit(z.reshape(H, K)[n // (HV // H)]) for z in (k, q))
                S[i, n] = S[i, n] @ np.diag(alpha[n])
                S[i, n] += beta[n] * np.outer(v.reshape(HV, V)[n] - S[i, n] @ key, key)
                o[n] = S[i, n] @ query / np.sqrt(K)
            x = x + rms(o).ravel() @ w["out"]
    return [rms(x) @ model.head.double().numpy(), *S, *window]


def _flat(state: OracleState) -> list[np.ndarray]:
    return [tensor.numpy() for tensor in (state.logits, *state.temporal, *state.conv)]


def _errors(found: list[np.ndarray], expected: list[np.ndarray]) -> list[float]:
    pairs = zip(found, expected, strict=True)
    return [float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in pairs]


def _same_bits(a: OracleState, b: OracleState) -> bool:
    tensors = zip((a.logits, *a.temporal, *a.conv), (b.logits, *b.temporal, *b.conv), strict=True)
    return all(torch.equal(x, y) for x, y in tensors) and (a.min_alpha, a.max_alpha) == (
        b.min_alpha,
        b.max_alpha,
    )


# -- right ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 3, 40])
def test_it_agrees_with_the_textbook(gate: Gate, length: int) -> None:
    config = ModelConfig(gate=gate)
    errors = _errors(_flat(Oracle(config).after(TOKENS[:length])), _textbook(config, TOKENS[:length]))
    assert len(errors) == 5
    assert max(errors) < 1e-11


def test_it_agrees_with_the_textbook_for_other_sizes(gate: Gate) -> None:
    config = ModelConfig(
        gate=gate, layers=3, heads=1, value_heads=3, key_dim=8, value_dim=5, conv_width=2, seed=4
    )
    errors = _errors(_flat(Oracle(config).after(TOKENS[:20])), _textbook(config, TOKENS[:20]))
    assert len(errors) == 7
    assert max(errors) < 1e-11


def test_a_textbook_without_decay_and_one_that_lacks_a_token_differ(gate: Gate) -> None:
    config, tokens = ModelConfig(gate=gate), TOKENS[:40]
    found = _flat(Oracle(config).after(tokens))
    assert min(_errors(found, _textbook(config, tokens, alpha_of=np.ones_like))[:3]) > 1e-2
    assert min(_errors(found, _textbook(config, tokens[1:]))[:3]) > 1e-3
    assert min(_errors(found, _textbook(config, tokens[:-1]))) > 1e-1


def test_everything_is_float64_whatever_the_pools_dtype() -> None:
    state = Oracle(ModelConfig(state_dtype="bf16", conv_dtype="bf16")).after(TOKENS[:2])
    assert {t.dtype for t in (state.logits, *state.temporal, *state.conv)} == {torch.float64}


# -- however it is asked -------------------------------------------------------------------------------


def _asked_at_once(oracle: Oracle) -> OracleState:
    return oracle.after(TOKENS[:30])


def _asked_token_by_token(oracle: Oracle) -> OracleState:
    return [oracle.after(TOKENS[:n]) for n in range(31)][-1]


def _asked_after_a_longer_one(oracle: Oracle) -> OracleState:
    oracle.after(TOKENS[:50])
    return oracle.after(TOKENS[:30])


def _asked_after_a_branch(oracle: Oracle) -> OracleState:
    oracle.after([*TOKENS[:20], 1, 2, 3])
    return oracle.after(tuple(TOKENS[:30]))


def _asked_twice(oracle: Oracle) -> OracleState:
    oracle.after(TOKENS[:30])
    return oracle.after(TOKENS[:30])


WAYS = [_asked_at_once, _asked_token_by_token, _asked_after_a_longer_one, _asked_after_a_branch, _asked_twice]


@pytest.mark.parametrize("kept", [4096, 5], ids=["all kept", "five kept"])
def test_a_state_does_not_depend_on_how_it_was_asked_for(
    gate: Gate, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_PREFIXES", kept)
    states = [way(Oracle(ModelConfig(gate=gate))) for way in WAYS]
    assert len(states) == 5
    assert all(_same_bits(state, states[0]) for state in states)
    assert not _same_bits(Oracle(ModelConfig(gate=gate)).after(TOKENS[:29]), states[0])


def test_an_answer_is_not_changed_by_later_questions() -> None:
    oracle = Oracle(ModelConfig())
    state = oracle.after(TOKENS[:10])
    before = [tensor.copy() for tensor in _flat(state)]
    oracle.after(TOKENS[:20])
    assert all(np.array_equal(a, b) for a, b in zip(_flat(state), before, strict=True))


def test_prefixes_kept_stay_within_their_bound_and_the_empty_one_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MAX_PREFIXES", 5)
    oracle = Oracle(ModelConfig())
    oracle.after(TOKENS[:30])
    assert sorted(fold.length for fold in oracle._states) == [0, 27, 28, 29, 30]


def test_the_reply_is_the_greedy_continuation(gate: Gate) -> None:
    oracle = Oracle(ModelConfig(gate=gate))
    reply = oracle.reply(TOKENS[:10], 8)
    fed = [*TOKENS[:10], *reply]
    assert len(reply) == 8
    assert all(int(oracle.after(fed[: 10 + n]).logits.argmax()) == token for n, token in enumerate(reply))
    assert reply != Oracle(ModelConfig(gate=gate)).reply(TOKENS[1:10], 8)


# -- the decay that keeps a wrong state visible --------------------------------------------------------


def test_alpha_stays_where_a_wrong_state_is_visible(gate: Gate) -> None:
    state = Oracle(ModelConfig(gate=gate)).after(TOKENS)
    assert len(TOKENS) == 200
    assert 0.9 <= state.min_alpha < state.max_alpha <= 0.999


def test_a_gate_projection_too_large_is_seen_in_the_extremes(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def coarse(config: ModelConfig) -> Weights:
        weights = draw_weights(config)
        for layer in weights.layers:
            layer.a.mul_(20)
        return weights

    monkeypatch.setattr(module, "draw_weights", coarse)
    state = Oracle(ModelConfig(gate=gate)).after(TOKENS)
    assert state.min_alpha < 0.9
    assert state.max_alpha > 0.999


def test_the_extremes_are_those_of_the_whole_prefix() -> None:
    oracle = Oracle(ModelConfig())
    states = [oracle.after(TOKENS[:n]) for n in (1, 5, 50, 200)]
    assert all(b.min_alpha <= a.min_alpha and b.max_alpha >= a.max_alpha for a, b in pairwise(states))
    assert states[3].min_alpha < states[0].min_alpha
