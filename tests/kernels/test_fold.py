"""Fold: records become state, for every layer in one launch, and nothing else moves."""

import torch


def test_one_launch_folds_every_layer(s, oracle, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=3, ring=3, layers=2)
    start = pool.temporal.clone()
    slots, depths = [2, 0], [3, 1]
    history = s.fill(kernels, pool, slots, depths, tiny, params, layers=2)
    kernels.launches.clear()
    kernels.fold(**pool.tensors(), slots=s.ints(*slots), counts=s.ints(*depths))
    assert kernels.launches == {f"fold[{kernels.mode}]": 1}
    compared = 0
    for layer in range(2):
        for row, slot in enumerate(slots):
            _, state = oracle.run(start[layer, slot], history[layer][row], **params)
            assert s.relative_error(pool.temporal[layer, slot], state) < 1e-6
            compared += 1
    assert compared == 4


def test_a_fold_of_the_first_records_leaves_the_later_ones_out(s, oracle, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=2, ring=4)
    start = pool.temporal[0, 1].clone()
    (row,) = s.fill(kernels, pool, [1], [4], tiny, params)[0]
    states = []
    for count in range(5):
        part = pool.copy()
        kernels.fold(**part.tensors(), slots=s.ints(1), counts=s.ints(count))
        states.append(part.temporal[0, 1])
    assert s.same_bits(states[0], start)
    for count in range(1, 5):
        _, state = oracle.run(start, {name: value[:count] for name, value in row.items()}, **params)
        assert s.relative_error(states[count], state) < 1e-6
        assert s.relative_error(states[count - 1], state) > 1e-3  # one record fewer is another state


def test_a_fold_into_another_slot_leaves_the_source_alone(s, kernels, tiny, state_dtype):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=4, ring=2, layers=2, dtype=state_dtype)
    s.fill(kernels, pool, [0, 1], [2, 2], tiny, params, layers=2)
    there, here = pool.copy(), pool.copy()
    kernels.fold(**there.tensors(), slots=s.ints(0, 1), counts=s.ints(2, 0), dst=s.ints(2, 3))
    kernels.fold(**here.tensors(), slots=s.ints(0), counts=s.ints(2))
    assert s.same_bits(there.temporal[:, :2], pool.temporal[:, :2])
    assert s.same_bits(there.temporal[:, 2], here.temporal[:, 0])
    assert not s.same_bits(there.temporal[:, 2], pool.temporal[:, 0])
    assert s.same_bits(there.temporal[:, 3], pool.temporal[:, 1])  # count 0: a plain copy


def test_padding_and_empty_rings_write_nothing(s, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=3, ring=2)
    s.fill(kernels, pool, [0, 1, 2], [2, 2, 2], tiny, params)
    before = pool.copy()
    kernels.fold(**pool.tensors(), slots=s.ints(-1, 1, 2), counts=s.ints(2, 0, 1), dst=s.ints(0, 1, -1))
    assert s.same_bits(pool.temporal, before.temporal)
    kernels.fold(**pool.tensors(), slots=s.ints(-1, 1, 2), counts=s.ints(2, 0, 1))
    assert s.same_bits(pool.temporal[:, :2], before.temporal[:, :2])
    assert not s.same_bits(pool.temporal[:, 2], before.temporal[:, 2])


def test_a_fold_does_not_touch_the_rings(s, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=2, ring=3)
    s.fill(kernels, pool, [0], [2], tiny, params)
    before = pool.copy()
    kernels.fold(**pool.tensors(), slots=s.ints(0), counts=s.ints(2))
    assert not s.same_bits(pool.temporal, before.temporal)
    for name in ("ring_d", "ring_k", "ring_g"):
        assert s.same_bits(getattr(pool, name), getattr(before, name)), name


def test_garbage_past_the_count_is_not_folded(s, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=1, ring=4)  # rings full of NaN
    s.fill(kernels, pool, [0], [2], tiny, params)
    clean = pool.copy()
    for ring in (clean.ring_d, clean.ring_k, clean.ring_g):
        ring.nan_to_num_(0.25)
    for p in (pool, clean):
        kernels.fold(**p.tensors(), slots=s.ints(0), counts=s.ints(2))
    assert pool.temporal.isfinite().all()
    assert s.same_bits(pool.temporal, clean.temporal)
    kernels.fold(**pool.tensors(), slots=s.ints(0), counts=s.ints(3))
    assert torch.isnan(pool.temporal).all()
