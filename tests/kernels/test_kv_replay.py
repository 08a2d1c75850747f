"""KV-buffer replay: raw inputs run again, token by token, give the state that a fold of records gives."""

import pytest
import torch

SLOTS, TOKENS, LAYERS = 4, 6, 2
BUFFERS = ("k", "v", "a", "b")


def _buffers(s, shape, dtype=torch.float32, seed=1):
    """Raw inputs of each layer and slot, and `q`, which takes no part in a state."""
    flat = s.tokens(shape, LAYERS * SLOTS * TOKENS, seed, dtype)
    return {name: x.view(LAYERS, SLOTS, TOKENS, *x.shape[1:]) for name, x in flat.items()}


def _gates(s, shape):
    """Gate parameters, other ones for each layer."""
    layers = [s.gates(shape, seed=99 + layer) for layer in range(LAYERS)]
    return {name: torch.stack([layer[name] for layer in layers]) for name in layers[0]}


def _replay(kernels, temporal, x, params, slots, counts, dst=None):
    kernels.kv_replay(temporal, *(x[name] for name in BUFFERS), **params, slots=slots, counts=counts, dst=dst)


def _fold(s, kernels, pool, x, params, slots, counts):
    """The parallel way: the same tokens decoded into rings, and the rings folded."""
    for layer in range(LAYERS):
        own = {name: value[layer] for name, value in params.items()}
        for t in range(TOKENS):
            now = {name: value[layer, slots, t].contiguous() for name, value in x.items()}
            at = s.ints(*[t] * len(slots))
            kernels.replay_decode(**now, **own, **pool.layer(layer), write_pos=at, slots=s.ints(*slots))
    kernels.fold(**pool.tensors(), slots=s.ints(*slots), counts=s.ints(*counts))


def test_the_serial_and_the_parallel_form_give_the_same_state(s, oracle, kernels, tiny):
    x, params = _buffers(s, tiny), _gates(s, tiny)
    serial = s.Pool(tiny, slots=SLOTS, ring=TOKENS, layers=LAYERS)
    parallel, start = serial.copy(), serial.temporal.clone()
    slots, counts = [3, 0, 1], [6, 1, 4]
    _fold(s, kernels, parallel, x, params, slots, counts)
    _replay(kernels, serial.temporal, x, params, s.ints(*slots), s.ints(*counts))
    compared = 0
    for layer in range(LAYERS):
        for slot, count in zip(slots, counts, strict=True):
            tokens = {name: value[layer, slot, :count] for name, value in x.items()}
            own = {name: value[layer] for name, value in params.items()}
            _, ref = oracle.run(start[layer, slot], tokens, **own)
            assert s.relative_error(serial.temporal[layer, slot], ref) < 1e-6
            assert s.relative_error(serial.temporal[layer, slot], parallel.temporal[layer, slot]) < 1e-6
            assert s.relative_error(start[layer, slot], ref) > 1e-2
            compared += 1
    assert compared == 6


def test_one_launch_replays_every_layer(s, kernels, tiny):
    pool = s.Pool(tiny, slots=SLOTS, ring=1, layers=LAYERS)
    before = pool.temporal.clone()
    _replay(kernels, pool.temporal, _buffers(s, tiny), _gates(s, tiny), s.ints(2), s.ints(3))
    assert kernels.launches == {f"kv_replay[{kernels.mode}]": 1}
    for layer in range(LAYERS):
        assert not s.same_bits(pool.temporal[layer, 2], before[layer, 2])
    others = [0, 1, 3]
    assert s.same_bits(pool.temporal[:, others], before[:, others])


def test_a_replay_into_another_slot_leaves_the_source_alone(s, kernels, tiny, state_dtype):
    x, params = _buffers(s, tiny), _gates(s, tiny)
    there = s.Pool(tiny, slots=SLOTS, ring=1, layers=LAYERS, dtype=state_dtype)
    here, before = there.copy(), there.temporal.clone()
    _replay(kernels, there.temporal, x, params, s.ints(0, 1), s.ints(4, 0), s.ints(2, 3))
    _replay(kernels, here.temporal, x, params, s.ints(0), s.ints(4))
    assert s.same_bits(there.temporal[:, :2], before[:, :2])
    assert s.same_bits(there.temporal[:, 2], here.temporal[:, 0])
    assert not s.same_bits(there.temporal[:, 2], before[:, 0])
    assert s.same_bits(there.temporal[:, 3], before[:, 1])  # count 0: a plain copy


def test_padding_and_empty_buffers_write_nothing(s, kernels, tiny):
    x, params = _buffers(s, tiny), _gates(s, tiny)
    pool = s.Pool(tiny, slots=SLOTS, ring=1, layers=LAYERS)
    before = pool.temporal.clone()
    _replay(kernels, pool.temporal, x, params, s.ints(-1, 1, 2), s.ints(2, 0, 1), s.ints(0, 1, -1))
    assert s.same_bits(pool.temporal, before)
    _replay(kernels, pool.temporal, x, params, s.ints(-1, 1, 2), s.ints(2, 0, 1))
    assert s.same_bits(pool.temporal[:, :2], before[:, :2])
    assert not s.same_bits(pool.temporal[:, 2], before[:, 2])


def test_tokens_past_the_count_are_not_replayed(s, kernels, tiny):
    x, params = _buffers(s, tiny), _gates(s, tiny)
    pool = s.Pool(tiny, slots=SLOTS, ring=1, layers=LAYERS)
    spoiled = {name: value.clone() for name, value in x.items()}
    for value in spoiled.values():
        value[:, :, 3:] = torch.nan
    states = []
    for buffers in (x, spoiled):
        states.append(pool.temporal.clone())
        _replay(kernels, states[-1], buffers, params, s.ints(1), s.ints(3))
    assert s.same_bits(*states)
    _replay(kernels, states[1], spoiled, params, s.ints(1), s.ints(4))
    assert states[1][:, 1].isnan().all()


def test_sizes_that_are_no_power_of_two_are_right(s, oracle, kernels, odd):
    x, params = _buffers(s, odd), _gates(s, odd)
    pool = s.Pool(odd, slots=SLOTS, ring=1, layers=LAYERS)
    start = pool.temporal.clone()
    _replay(kernels, pool.temporal, x, params, s.ints(3), s.ints(TOKENS))
    for layer in range(LAYERS):
        tokens = {name: value[layer, 3] for name, value in x.items()}
        _, ref = oracle.run(start[layer, 3], tokens, **{name: value[layer] for name, value in params.items()})
        assert s.relative_error(pool.temporal[layer, 3], ref) < 1e-6


@pytest.mark.parametrize("low", [torch.bfloat16, torch.float16], ids=str)
def test_sixteen_bit_buffers_hold_sixteen_bit_inputs_exactly(s, kernels, tiny, low):
    params = _gates(s, tiny)
    x = _buffers(s, tiny, dtype=low)
    pool = s.Pool(tiny, slots=SLOTS, ring=1, layers=LAYERS)
    states = []
    for buffers in (x, {name: value.float() for name, value in x.items()}):
        states.append(pool.temporal.clone())
        _replay(kernels, states[-1], buffers, params, s.ints(0, 2), s.ints(5, 6))
    assert s.same_bits(*states)
    assert not s.same_bits(states[0], pool.temporal)


def test_no_rows_launch_nothing(s, kernels, tiny):
    pool = s.Pool(tiny, slots=SLOTS, ring=1, layers=LAYERS)
    _replay(kernels, pool.temporal, _buffers(s, tiny), _gates(s, tiny), s.ints(), s.ints())
    assert not kernels.launches
