"""What replay decode reads, what it writes and what it must leave alone."""

import pytest
import torch


def test_rows_at_different_ring_positions_share_one_batch(s, oracle, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=4, ring=4)
    start = pool.temporal.clone()
    slots, depths = [3, 0, 2], [3, 0, 1]
    history = s.fill(kernels, pool, slots, depths, tiny, params)[0]
    x = s.tokens(tiny, 3, seed=1)
    out = kernels.replay_decode(
        **x, **params, **pool.layer(), write_pos=s.ints(*depths), slots=s.ints(*slots)
    )
    for row, slot in enumerate(slots):
        now = {name: value[row : row + 1] for name, value in x.items()}
        past = history[row]
        everything = now if past is None else {name: torch.cat([past[name], now[name]]) for name in now}
        outs, _ = oracle.run(start[0, slot], everything, **params)
        assert s.relative_error(out[row], outs[-1]) < 1e-6


def test_records_at_and_past_write_pos_and_other_slots_are_never_read(s, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=3, ring=4)  # rings full of NaN
    s.fill(kernels, pool, [1], [2], tiny, params)
    pool.temporal[0, 0] = torch.nan
    clean = pool.copy()
    for ring in (clean.ring_d, clean.ring_k, clean.ring_g):
        ring.nan_to_num_(0.25)
    x = s.tokens(tiny, 1, seed=3)
    outs = [
        kernels.replay_decode(**x, **params, **p.layer(), write_pos=s.ints(2), slots=s.ints(1))
        for p in (pool, clean)
    ]
    assert outs[0].isfinite().all()
    assert s.same_bits(*outs)


def test_a_record_before_write_pos_is_read(s, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=3, ring=4)
    s.fill(kernels, pool, [1], [2], tiny, params)
    pool.ring_d[0, 1, :, 1] = torch.nan
    x = s.tokens(tiny, 1, seed=3)
    out = kernels.replay_decode(**x, **params, **pool.layer(), write_pos=s.ints(2), slots=s.ints(1))
    assert out.isnan().all()


def test_a_step_writes_one_record_and_nothing_else(s, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=3, ring=4)
    before = pool.copy()
    x = s.tokens(tiny, 1, seed=3)
    kernels.replay_decode(**x, **params, **pool.layer(), write_pos=s.ints(0), slots=s.ints(1))
    assert s.same_bits(pool.temporal, before.temporal)
    for name in ("ring_d", "ring_k", "ring_g"):
        ring, old = getattr(pool, name), getattr(before, name)
        assert ring[0, 1, :, 0].isfinite().all(), name
        ring[0, 1, :, 0] = torch.nan
        assert s.same_bits(ring, old), name


def test_the_ring_holds_the_key_once_per_key_head(s, oracle, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=2, ring=2)
    x = s.tokens(tiny, 1, seed=3)
    kernels.replay_decode(**x, **params, **pool.layer(), write_pos=s.ints(0), slots=s.ints(0))
    row = {name: value[0] for name, value in x.items() if name != "v"}
    _, k, decay, _ = oracle.token_terms(**row, **params, group=1)
    assert pool.ring_k.shape[2] == 1
    held = pool.ring_k[0, 0, :, 0]
    if kernels.ring.keys == "raw":
        assert s.same_bits(held, x["k"][0])
        held = held / x["k"][0].norm(dim=-1, keepdim=True)
    assert s.relative_error(held, k) < 1e-6
    alpha = pool.ring_g[0, 0, :, 0].exp()
    assert s.relative_error(alpha.reshape(decay.shape), decay) < 1e-6


@pytest.mark.parametrize("which", [(-1, 2, -1), (-1, -1, -1)], ids=["some rows", "all rows"])
def test_padded_rows_write_nothing_and_output_zero(s, kernels, tiny, which):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=4, ring=2)
    before = pool.copy()
    x = s.tokens(tiny, 3, seed=3)
    out = kernels.replay_decode(
        **x, **params, **pool.layer(), write_pos=s.ints(0, 0, 0), slots=s.ints(*which)
    )
    packed = kernels.packed_decode(**x, **params, temporal=pool.temporal[0], slots=s.ints(*which))
    for row, slot in enumerate(which):
        assert bool(out[row].any()) == bool(packed[row].any()) == (slot >= 0)
    for name, tensor in pool.tensors().items():
        for slot in {0, 1, 2, 3} - set(which):
            assert s.same_bits(tensor[0, slot], getattr(before, name)[0, slot]), (name, slot)


def test_a_slot_of_the_batch_does_change(s, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=2, ring=2)
    before = pool.copy()
    x = s.tokens(tiny, 1, seed=3)
    kernels.replay_decode(**x, **params, **pool.layer(), write_pos=s.ints(0), slots=s.ints(1))
    kernels.packed_decode(**x, **params, temporal=pool.temporal[0], slots=s.ints(1))
    for name, tensor in pool.tensors().items():
        assert not s.same_bits(tensor[0, 1], getattr(before, name)[0, 1]), name


def test_an_empty_batch_launches_nothing(s, kernels, tiny):
    pool = s.Pool(tiny, slots=2, ring=2)
    out = kernels.replay_decode(
        **s.tokens(tiny, 0, seed=3), **s.gates(tiny), **pool.layer(), write_pos=s.ints(), slots=s.ints()
    )
    assert out.shape == (0, tiny.HV, tiny.V)
    assert not kernels.launches
