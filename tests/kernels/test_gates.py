"""Gates at and beyond the ends of their range."""

import math

import pytest
import torch

from replaylife.kernels.math_torch import log_decay


def _gate(s, kernels, tiny, a_plus_bias, A_log=0.0):
    """The gate that a decode step records for `a + dt_bias`."""
    params = {name: torch.zeros_like(value) for name, value in s.gates(tiny).items()}
    params["A_log"].fill_(A_log)
    params["dt_bias"].fill_(a_plus_bias)
    x = s.tokens(tiny, 1, seed=0)
    x["a"] = torch.zeros_like(x["a"])
    pool = s.Pool(tiny, slots=1, ring=1)
    kernels.replay_decode(**x, **params, **pool.layer(), write_pos=s.ints(0), slots=s.ints(0))
    g = pool.ring_g[0, 0, :, 0]
    assert (g == g.flatten()[0]).all()
    return g.flatten()[0].item()


@pytest.mark.parametrize("x", [-80.0, -40.0, -17.0, -5.0, -1.0, -1e-3, 0.0, 1e-3, 1.0, 5.0, 19.0, 21.0, 40.0])
def test_a_gate_keeps_fp32_accuracy_over_its_whole_range(s, kernels, tiny, x):
    exact = -torch.logaddexp(
        torch.tensor(x, dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    ).item()
    # exp(x) itself carries |x| roundings where hardware multiplies by log2(e) first.
    assert _gate(s, kernels, tiny, x) == pytest.approx(exact, rel=5e-7 + 1e-7 * max(0.0, -x))


def test_a_gate_is_scaled_by_the_rate_of_its_head(s, kernels, tiny):
    assert _gate(s, kernels, tiny, 1.0, A_log=2.0) == pytest.approx(
        -math.exp(2) * math.log1p(math.e), rel=1e-6
    )


def test_a_gate_far_below_zero_is_exactly_none(s, kernels, tiny):
    assert _gate(s, kernels, tiny, -200.0) == 0.0
    assert _gate(s, kernels, tiny, -40.0) < 0.0


def test_a_plain_logarithm_would_not_be_accurate_enough():
    """What the tests above must catch: `log(1 + exp(x))` loses every digit of a small gate."""
    x = torch.tensor([-17.0])
    plain = torch.log(1 + torch.exp(x)).item()
    ours = -log_decay(x, torch.zeros(1), torch.zeros(1), vector=False).item()
    assert ours == pytest.approx(4.1399376e-8, rel=1e-6)
    assert plain != pytest.approx(4.1399376e-8, rel=1e-2)


def test_no_decay_leaves_an_orthogonal_state_bitwise_alone(s, kernels, tiny):
    params = s.gates(tiny)
    params["dt_bias"].fill_(-200.0)
    pool = s.Pool(tiny, slots=1, ring=2)
    pool.temporal[..., 0] = 0.0
    before = pool.temporal.clone()
    x = s.tokens(tiny, 1, seed=0)
    x["k"] = torch.zeros_like(x["k"])
    x["k"][..., 0] = 32.0
    kernels.replay_decode(**x, **params, **pool.layer(), write_pos=s.ints(0), slots=s.ints(0))
    kernels.fold(**pool.tensors(), slots=s.ints(0), counts=s.ints(1))
    assert s.same_bits(pool.temporal[..., 1:].contiguous(), before[..., 1:].contiguous())
    expected = torch.sigmoid(x["b"][0].double())[:, None] * x["v"][0].double()
    assert s.relative_error(pool.temporal[0, 0, ..., 0], expected) < 1e-6


def test_a_gate_that_erases_the_state_leaves_the_later_records_exact(s, oracle, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=1, ring=6)
    start = pool.temporal[0, 0].clone()
    rows = []
    for step in range(6):
        x = s.tokens(tiny, 1, seed=step)
        if step == 2:
            x["a"] += 4000.0
        rows.append(x)
        out = kernels.replay_decode(**x, **params, **pool.layer(), write_pos=s.ints(step), slots=s.ints(0))
    kernels.fold(**pool.tensors(), slots=s.ints(0), counts=s.ints(6))
    everything = {name: torch.cat([row[name] for row in rows]) for name in rows[0]}
    outs, state = oracle.run(start, everything, **params)
    tolerance = 1e-6
    if kernels.ring.gates == "cumulative":  # a sum of 3000 is rounded at 1e-4: what this format gives away
        tolerance = 3e-4
        assert s.relative_error(pool.temporal[0, 0], state) > 1e-6
    assert s.relative_error(out[0], outs[-1]) < tolerance
    assert s.relative_error(pool.temporal[0, 0], state) < tolerance
