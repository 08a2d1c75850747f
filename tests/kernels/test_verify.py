"""Verify: a window of tokens at once is the same tokens one by one, and can be taken back."""

from itertools import product

import pytest
import torch

from replaylife.kernels import Kernels, RingFormat

FORMATS = [RingFormat(keys, gates) for keys, gates in product(("raw", "normalised"), ("step", "cumulative"))]
RINGS = ("ring_d", "ring_k", "ring_g")
SLOTS, DEPTHS, LENGTHS, WINDOW, RING = [3, 0, 2, 1], [3, 0, 1, 2], [4, 5, 1, 0], 5, 9


def _window(s, shape, rows, tokens, seed=1, dtype=torch.float32):
    flat = s.tokens(shape, rows * tokens, seed, dtype)
    return {name: x.view(rows, tokens, *x.shape[1:]) for name, x in flat.items()}


def _pool(s, shape, kernels, **kind):
    """Slots with records pending, and what they absorbed; rings are NaN beyond."""
    pool = s.Pool(shape, slots=5, ring=RING, **kind)
    start = pool.temporal.clone()
    return pool, start, s.fill(kernels, pool, SLOTS, DEPTHS, shape, s.gates(shape))[0]


def _verify(s, kernels, pool, x, shape, depths=DEPTHS, slots=SLOTS, lengths=LENGTHS):
    cursors = {"write_pos": s.ints(*depths), "slots": s.ints(*slots), "lengths": s.ints(*lengths)}
    return kernels.verify(**x, **s.gates(shape), **pool.layer(), **cursors)


def _one_by_one(s, kernels, pool, x, shape, lengths=LENGTHS):
    outs = []
    for t in range(max(lengths)):
        active = [slot if t < n else -1 for slot, n in zip(SLOTS, lengths, strict=True)]
        now = {name: value[:, t].contiguous() for name, value in x.items()}
        at = s.ints(*[depth + t for depth in DEPTHS])
        outs.append(
            kernels.replay_decode(
                **now, **s.gates(shape), **pool.layer(), write_pos=at, slots=s.ints(*active)
            )
        )
    return torch.stack(outs, dim=1)


def _joined(past, x, row, count):
    """Tokens that a row has absorbed after `count` of its window."""
    new = {name: value[row, :count] for name, value in x.items()}
    return new if past is None else {name: torch.cat([past[name], new[name]]) for name in new}


@pytest.fixture(params=["torch", "triton"])
def backend(request):
    return request.param


@pytest.fixture(params=FORMATS, ids="-".join)
def formatted(request, s, backend):
    """Kernels of each backend for each way to store a record."""
    return Kernels.load(backend, s.DEVICE, request.param)


def test_a_window_gives_the_outputs_of_the_float64_recurrence(s, oracle, formatted, tiny):
    pool, start, past = _pool(s, tiny, formatted)
    x = _window(s, tiny, 4, WINDOW)
    out = _verify(s, formatted, pool, x, tiny)
    compared = 0
    for row, (slot, depth, length) in enumerate(zip(SLOTS, DEPTHS, LENGTHS, strict=True)):
        if length:
            refs, _ = oracle.run(start[0, slot], _joined(past[row], x, row, length), **s.gates(tiny))
            assert s.relative_error(out[row, :length], refs[depth:]) < 1e-6
            compared += length
    assert compared == 10


def test_a_window_equals_as_many_single_steps(s, formatted, tiny):
    pool, _, _ = _pool(s, tiny, formatted)
    single, x = pool.copy(), _window(s, tiny, 4, WINDOW)
    out = _verify(s, formatted, pool, x, tiny)
    steps = _one_by_one(s, formatted, single, x, tiny)
    assert s.relative_error(out, steps) < 1e-6
    for name in RINGS:
        ring, ref = getattr(pool, name), getattr(single, name)
        assert torch.equal(ring.isnan(), ref.isnan()), name
        assert s.relative_error(ring.nan_to_num(), ref.nan_to_num()) < 1e-6, name


@pytest.mark.parametrize("low", [torch.bfloat16, torch.float16], ids=str)
def test_later_tokens_read_the_records_as_a_low_precision_ring_holds_them(s, backend, tiny, low):
    kernels = Kernels.load(backend, s.DEVICE)
    pool, _, _ = _pool(s, tiny, kernels, ring_dtype=low)
    exact = s.Pool(tiny, slots=5, ring=RING)
    exact.ring_d, exact.ring_k, exact.ring_g = pool.ring_d.float(), pool.ring_k.float(), pool.ring_g.clone()
    single, x = pool.copy(), _window(s, tiny, 4, WINDOW)
    out = _verify(s, kernels, pool, x, tiny)
    unrounded = _verify(s, kernels, exact, x, tiny)
    steps = _one_by_one(s, kernels, single, x, tiny)
    rounding = s.relative_error(unrounded, steps)
    assert rounding > 1e-5
    assert s.relative_error(out, steps) < rounding / 20


def test_every_state_dtype_is_read_as_it_is(s, oracle, backend, tiny, state_dtype):
    kernels = Kernels.load(backend, s.DEVICE)
    pool, start, past = _pool(s, tiny, kernels, dtype=state_dtype)
    x = _window(s, tiny, 4, WINDOW)
    out = _verify(s, kernels, pool, x, tiny)
    refs, _ = oracle.run(start[0, 3], _joined(past[0], x, 0, 4), **s.gates(tiny))
    assert s.relative_error(out[0, :4], refs[3:]) < 1e-6
    assert s.same_bits(pool.temporal, start)


def test_sixteen_bit_inputs_give_sixteen_bit_outputs(s, backend, tiny, state_dtype):
    kernels = Kernels.load(backend, s.DEVICE)
    pool, _, _ = _pool(s, tiny, kernels)
    x = _window(s, tiny, 4, WINDOW, dtype=state_dtype)
    twin = pool.copy()
    out = _verify(s, kernels, pool, x, tiny)
    ref = _verify(s, kernels, twin, {name: value.float() for name, value in x.items()}, tiny)
    assert out.dtype == state_dtype
    assert s.relative_error(out, ref.to(state_dtype)) < 1e-2
    assert s.relative_error(out, ref) < torch.finfo(state_dtype).eps


def test_a_window_of_one_token_is_a_replay_decode(s, formatted, tiny):
    pool, _, _ = _pool(s, tiny, formatted)
    single, x = pool.copy(), _window(s, tiny, 4, 1)
    out = _verify(s, formatted, pool, x, tiny, lengths=[1] * 4)
    steps = _one_by_one(s, formatted, single, x, tiny, lengths=[1] * 4)
    assert s.relative_error(out, steps) < 1e-6


def test_after_a_rejection_the_kept_records_fold_to_the_state_of_the_kept_tokens(s, oracle, formatted, tiny):
    pool, start, past = _pool(s, tiny, formatted)
    x = _window(s, tiny, 4, WINDOW)
    _verify(s, formatted, pool, x, tiny)
    compared = 0
    for kept in range(1, WINDOW + 1):
        counts = [depth + min(kept, length) for depth, length in zip(DEPTHS, LENGTHS, strict=True)]
        part = pool.copy()
        formatted.fold(**part.tensors(), slots=s.ints(*SLOTS), counts=s.ints(*counts))
        for row, slot in enumerate(SLOTS):
            seen = _joined(past[row], x, row, min(kept, LENGTHS[row]))
            _, state = oracle.run(start[0, slot], seen, **s.gates(tiny))
            assert s.relative_error(part.temporal[0, slot], state) < 1e-6
            compared += 1
    assert compared == 20


def test_a_window_after_a_rejection_reads_only_what_was_kept(s, oracle, formatted, tiny):
    pool, start, past = _pool(s, tiny, formatted)
    first, second = (_window(s, tiny, 4, WINDOW, seed=seed) for seed in (1, 2))
    _verify(s, formatted, pool, first, tiny)
    out = _verify(
        s, formatted, pool, second, tiny, depths=[5, 2, 2, 2], lengths=[4, 3, 2, 1]
    )  # kept 2, 2, 1 and 0 tokens
    compared = 0
    for row, (slot, kept, length) in enumerate(zip(SLOTS, (2, 2, 1, 0), (4, 3, 2, 1), strict=True)):
        seen = _joined(_joined(past[row], first, row, kept), second, row, length)
        refs, _ = oracle.run(start[0, slot], seen, **s.gates(tiny))
        assert s.relative_error(out[row, :length], refs[-length:]) < 1e-6
        compared += 1
    assert compared == 4


def test_a_window_writes_its_records_and_nothing_else(s, formatted, tiny):
    pool, _, _ = _pool(s, tiny, formatted)
    before = pool.copy()
    _verify(s, formatted, pool, _window(s, tiny, 4, WINDOW), tiny)
    assert s.same_bits(pool.temporal, before.temporal)
    for name in RINGS:
        ring, old = getattr(pool, name)[0], getattr(before, name)[0]
        for slot, depth, length in zip(SLOTS, DEPTHS, LENGTHS, strict=True):
            records = ring[slot, :, depth : depth + length]
            assert records.isfinite().all(), name
            records.fill_(torch.nan)
        assert s.same_bits(ring, old), name


def test_records_past_the_cursor_are_never_read(s, formatted, tiny):
    pool, _, _ = _pool(s, tiny, formatted)  # rings full of NaN
    x = _window(s, tiny, 4, WINDOW)
    assert _verify(s, formatted, pool, x, tiny).isfinite().all()
    pool.ring_d[0, 3, :, 1] = torch.nan  # before the cursor of row 0: read
    assert _verify(s, formatted, pool, x, tiny)[0, :4].isnan().all()


def test_padding_and_tokens_past_a_length_output_zero(s, formatted, tiny):
    pool, _, _ = _pool(s, tiny, formatted)
    before, x = pool.copy(), _window(s, tiny, 4, WINDOW)
    for value in x.values():  # what stands past a length is never used
        for row, length in enumerate(LENGTHS):
            value[row, length:] = torch.nan
    out = _verify(s, formatted, pool, x, tiny, slots=[3, -1, 2, 1])
    used = [[bool(token.any()) for token in row] for row in out]
    assert used == [[True] * 4 + [False], [False] * 5, [True] + [False] * 4, [False] * 5]
    assert out.isfinite().all()
    for name, tensor in pool.tensors().items():
        assert s.same_bits(tensor[0, [0, 1, 4]], getattr(before, name)[0, [0, 1, 4]]), name


def test_no_rows_launch_nothing(s, formatted, tiny):
    pool = s.Pool(tiny, slots=2, ring=4)
    out = _verify(s, formatted, pool, _window(s, tiny, 0, 3), tiny, depths=[], slots=[], lengths=[])
    assert out.shape == (0, 3, tiny.HV, tiny.V)
    assert not formatted.launches


def test_a_window_as_long_as_the_ring_and_sizes_that_are_no_power_of_two(s, oracle, formatted, odd):
    pool = s.Pool(odd, slots=1, ring=19)  # more than a tile of 16
    start, x = pool.temporal[0, 0].clone(), _window(s, odd, 1, 19)
    out = _verify(s, formatted, pool, x, odd, depths=[0], slots=[0], lengths=[19])
    formatted.fold(**pool.tensors(), slots=s.ints(0), counts=s.ints(19))
    refs, state = oracle.run(start, {name: value[0] for name, value in x.items()}, **s.gates(odd))
    assert s.relative_error(out[0], refs) < 1e-6
    assert s.relative_error(pool.temporal[0, 0], state) < 1e-6


def test_strong_and_absent_decay_lose_no_digits(s, oracle, backend, tiny):
    """A difference of gate sums would: a sum near 200 leaves five digits after the point."""
    kernels = Kernels.load(backend, s.DEVICE)
    pool = s.Pool(tiny, slots=1, ring=8)
    start, x = pool.temporal[0, 0].clone(), _window(s, tiny, 1, 6)
    params = s.gates(tiny)
    x["a"][:, 1] += 300.0
    x["a"][:, 4] -= 300.0
    out = kernels.verify(
        **x, **params, **pool.layer(), write_pos=s.ints(0), slots=s.ints(0), lengths=s.ints(6)
    )
    refs, _ = oracle.run(start, {name: value[0] for name, value in x.items()}, **params)
    assert s.relative_error(out[0], refs) < 1e-6


def test_the_twins_agree_to_rounding(s, twins, shape):
    pools, outs = [], []
    for kernels in twins:
        pool, _, _ = _pool(s, shape, twins[0])
        outs.append(_verify(s, kernels, pool, _window(s, shape, 4, WINDOW), shape))
        pools.append(pool)
    assert s.relative_error(outs[1], outs[0]) < 1e-6
    for name in RINGS:
        ours, theirs = (getattr(pool, name).nan_to_num() for pool in pools)
        assert s.relative_error(theirs, ours) < 1e-6, name
