"""Chunk-parallel prefill: the same recurrence, in any chunking."""

import pytest
import torch

TOLERANCE = 1e-6


@pytest.mark.parametrize("count", [1, 15, 16, 17, 50])
def test_prefill_follows_the_float64_recurrence(s, oracle, kernels, shape, count):
    params = s.gates(shape)
    pool = s.Pool(shape, slots=2, ring=1)
    x = s.tokens(shape, count, seed=1)
    outs, state = oracle.run(pool.temporal[0, 1], x, **params)
    out = kernels.prefill(
        **x, **params, temporal=pool.temporal[0], slots=s.ints(1), cu_seqlens=s.ints(0, count)
    )
    assert s.relative_error(out, outs) < TOLERANCE
    assert s.relative_error(pool.temporal[0, 1], state) < TOLERANCE


def test_prefill_equals_decode_token_by_token(s, kernels, tiny):
    params = s.gates(tiny)
    prefilled = s.Pool(tiny, slots=1, ring=1)
    decoded = prefilled.copy()
    x = s.tokens(tiny, 20, seed=1)
    out = kernels.prefill(
        **x, **params, temporal=prefilled.temporal[0], slots=s.ints(0), cu_seqlens=s.ints(0, 20)
    )
    steps = []
    for t in range(20):
        row = {name: value[t : t + 1].contiguous() for name, value in x.items()}
        steps.append(kernels.packed_decode(**row, **params, temporal=decoded.temporal[0], slots=s.ints(0)))
    assert s.relative_error(out, torch.cat(steps)) < TOLERANCE
    assert s.relative_error(prefilled.temporal, decoded.temporal) < TOLERANCE


def test_prefill_in_chunks_equals_prefill_in_one_piece(s, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=2, ring=1)
    x = s.tokens(tiny, 37, seed=2)
    whole = pool.copy()
    out = kernels.prefill(
        **x, **params, temporal=whole.temporal[0], slots=s.ints(1), cu_seqlens=s.ints(0, 37)
    )
    tried = 0
    for sizes in [(6, 31), (16, 21), (1, 36), (10, 10, 17)]:
        chunked, parts, start = pool.copy(), [], 0
        for size in sizes:
            part = {name: value[start : start + size].contiguous() for name, value in x.items()}
            bounds = s.ints(0, size)
            parts.append(
                kernels.prefill(
                    **part, **params, temporal=chunked.temporal[0], slots=s.ints(1), cu_seqlens=bounds
                )
            )
            start += size
        assert s.relative_error(torch.cat(parts), out) < TOLERANCE, sizes
        assert s.relative_error(chunked.temporal[0, 1], whole.temporal[0, 1]) < TOLERANCE, sizes
        tried += 1
    assert tried == 4


def test_packed_sequences_and_padding_keep_apart(s, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=4, ring=1)
    alone = pool.copy()
    x = s.tokens(tiny, 12, seed=3)
    out = kernels.prefill(
        **x, **params, temporal=pool.temporal[0], slots=s.ints(2, -1, 0), cu_seqlens=s.ints(0, 5, 8, 12)
    )
    for slot, start, end in ((2, 0, 5), (0, 8, 12)):
        part = {name: value[start:end].contiguous() for name, value in x.items()}
        ref = kernels.prefill(
            **part,
            **params,
            temporal=alone.temporal[0],
            slots=s.ints(slot),
            cu_seqlens=s.ints(0, end - start),
        )
        assert s.relative_error(out[start:end], ref) < TOLERANCE
    assert not out[5:8].any()
    assert s.relative_error(pool.temporal, alone.temporal) < TOLERANCE
    assert s.same_bits(pool.temporal[:, [1, 3]], s.Pool(tiny, slots=4, ring=1).temporal[:, [1, 3]])


def test_prefill_survives_gates_that_erase_the_state(s, oracle, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=1, ring=1)
    x = s.tokens(tiny, 20, seed=4)
    x["a"][3] = 4000.0  # a difference of two prefix sums would lose the gates after it
    outs, state = oracle.run(pool.temporal[0, 0], x, **params)
    out = kernels.prefill(**x, **params, temporal=pool.temporal[0], slots=s.ints(0), cu_seqlens=s.ints(0, 20))
    assert s.relative_error(out, outs) < TOLERANCE
    assert s.relative_error(pool.temporal[0, 0], state) < TOLERANCE
