"""Decode against the float64 recurrence, at every ring length and between the twins."""

import pytest
import torch

TOLERANCE = 1e-6


def _steps(kernels):
    return 30 if kernels.mode == "triton-interpreted" else 200


@pytest.mark.parametrize("ring", [1, 2, 7, 16])
def test_replay_stays_within_tolerance_of_float64(s, oracle, kernels, shape, ring):
    params = s.gates(shape)
    pool = s.Pool(shape, slots=2, ring=ring)
    slots, state = s.ints(1), pool.temporal[0, 1].cpu().double()
    errors, pending = [], 0
    for step in range(_steps(kernels)):
        x = s.tokens(shape, 1, seed=step)
        out = kernels.replay_decode(**x, **params, **pool.layer(), write_pos=s.ints(pending), slots=slots)
        ref, state = oracle.step(state, **{name: value[0] for name, value in x.items()}, **params)
        errors.append(s.relative_error(out[0], ref))
        pending += 1
        if pending == ring:
            kernels.fold(**pool.tensors(), slots=slots, counts=s.ints(pending))
            pending = 0
    kernels.fold(**pool.tensors(), slots=slots, counts=s.ints(pending))
    assert len(errors) == _steps(kernels)
    assert max(errors) < 5 * TOLERANCE  # one output vector: no averaging over a whole state
    assert s.relative_error(pool.temporal[0, 1], state) < TOLERANCE


def test_packed_stays_within_tolerance_of_float64(s, oracle, kernels, shape):
    params = s.gates(shape)
    pool = s.Pool(shape, slots=2, ring=1)
    state = pool.temporal[0, 1].cpu().double()
    for step in range(_steps(kernels)):
        x = s.tokens(shape, 1, seed=step)
        kernels.packed_decode(**x, **params, temporal=pool.temporal[0], slots=s.ints(1))
        _, state = oracle.step(state, **{name: value[0] for name, value in x.items()}, **params)
    assert s.relative_error(pool.temporal[0, 1], state) < TOLERANCE


def test_sizes_that_are_no_power_of_two_are_right(s, oracle, kernels, odd):
    params = s.gates(odd)
    pool = s.Pool(odd, slots=1, ring=5)
    start = pool.temporal[0, 0].clone()
    (row,) = s.fill(kernels, pool, [0], [4], odd, params)[0]
    out = kernels.replay_decode(
        **(last := s.tokens(odd, 1, seed=5)), **params, **pool.layer(), write_pos=s.ints(4), slots=s.ints(0)
    )
    kernels.fold(**pool.tensors(), slots=s.ints(0), counts=s.ints(5))
    everything = {name: torch.cat([row[name], last[name]]) for name in row}
    outs, state = oracle.run(start, everything, **params)
    assert s.relative_error(out[0], outs[-1]) < TOLERANCE
    assert s.relative_error(pool.temporal[0, 0], state) < TOLERANCE


def test_the_twins_agree_to_rounding(s, twins, shape):
    params = s.gates(shape)
    pools = [s.Pool(shape, slots=2, ring=3) for _ in twins]
    for step in range(3):
        x = s.tokens(shape, 2, seed=step)
        outs = [
            kernels.replay_decode(
                **x, **params, **pool.layer(), write_pos=s.ints(step, step), slots=s.ints(1, 0)
            )
            for kernels, pool in zip(twins, pools, strict=True)
        ]
        assert s.relative_error(outs[1], outs[0]) < TOLERANCE
    for kernels, pool in zip(twins, pools, strict=True):
        kernels.fold(**pool.tensors(), slots=s.ints(0, 1), counts=s.ints(3, 2))
    for name in pools[0].tensors():
        assert s.relative_error(getattr(pools[1], name), getattr(pools[0], name)) < TOLERANCE, name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def test_the_twins_round_a_two_byte_state_alike(s, twins, tiny, dtype):
    """Truncation instead of rounding to nearest drifts to about 5e-2 in bf16."""
    params = s.gates(tiny)
    pools = [s.Pool(tiny, slots=1, ring=1, dtype=dtype) for _ in twins]
    for step in range(40):
        x = s.tokens(tiny, 1, seed=step)
        for kernels, pool in zip(twins, pools, strict=True):
            kernels.packed_decode(**x, **params, temporal=pool.temporal[0], slots=s.ints(0))
    assert s.relative_error(pools[1].temporal, pools[0].temporal) < 2e-3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def test_a_two_byte_ring_costs_its_rounding_and_no_more(s, kernels, tiny, dtype):
    params = s.gates(tiny)
    exact = s.Pool(tiny, slots=1, ring=4)
    coarse = s.Pool(tiny, slots=1, ring=4, ring_dtype=dtype)
    for pool in (exact, coarse):
        s.fill(kernels, pool, [0], [4], tiny, params)
        kernels.fold(**pool.tensors(), slots=s.ints(0), counts=s.ints(4))
    assert 0 < s.relative_error(coarse.temporal, exact.temporal) < 4 * torch.finfo(dtype).eps
