"""The reference configuration: replay with a ring of one record is packed decode, bit for bit."""

import pytest
import torch

LAYERS = 2


def _steps_of_both(s, reference, shape, dtype, steps, make_tokens, used=None):
    """Run packed and replay over the same tokens, one fold of both layers a step.

    Yields pairs (packed, replay): the outputs of each layer, then the states.
    """
    params = s.gates(shape)
    slots = s.ints(2, -1, 0)
    packed = s.Pool(shape, slots=3, ring=1, dtype=dtype, layers=LAYERS)
    packed.temporal[:, 0] = 0.0  # a fresh slot beside a used one
    if used is not None:
        packed.temporal[:, 2] = used
    replay = packed.copy()
    for step in range(steps):
        pairs = []
        for layer in range(LAYERS):
            x = {**make_tokens(LAYERS * step + layer), **params}
            outs = (
                reference.packed_decode(**x, temporal=packed.temporal[layer], slots=slots),
                reference.replay_decode(**x, **replay.layer(layer), write_pos=s.ints(0, 0, 0), slots=slots),
            )
            pairs.append(outs)
        reference.fold(**replay.tensors(), slots=slots, counts=s.ints(1, 1, 1))
        yield [*pairs, (packed.temporal, replay.temporal)]


def _assert_same_bits(s, steps):
    compared = 0
    for pairs in steps:
        for packed, replay in pairs:
            assert packed.float().norm() > 0.01
            assert s.same_bits(packed, replay)
            compared += 1
    return compared


def test_replay_with_a_ring_of_one_equals_packed_decode_in_every_bit(s, reference, shape, state_dtype):
    steps = _steps_of_both(s, reference, shape, state_dtype, 3, lambda seed: s.tokens(shape, 3, seed))
    assert _assert_same_bits(s, steps) == 3 * (LAYERS + 1)


def test_sizes_that_are_no_power_of_two_keep_the_bits_equal(s, reference, odd):
    steps = _steps_of_both(s, reference, odd, torch.float32, 2, lambda seed: s.tokens(odd, 3, seed))
    assert _assert_same_bits(s, steps) == 2 * (LAYERS + 1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def test_two_byte_inputs_keep_the_bits_equal(s, reference, tiny, dtype):
    steps = _steps_of_both(s, reference, tiny, dtype, 2, lambda seed: s.tokens(tiny, 3, seed, dtype))
    assert _assert_same_bits(s, steps) == 2 * (LAYERS + 1)


def test_the_sign_of_a_zero_is_equal_too(s, reference, tiny):
    def one_hot(seed):
        x = s.tokens(tiny, 3, seed)
        for name, size in (("q", 32.0), ("k", -32.0)):
            x[name] = torch.zeros_like(x[name])
            x[name][..., seed] = size
        return x

    steps = list(_steps_of_both(s, reference, tiny, torch.float32, 3, one_hot, used=-0.0))
    state = steps[-1][-1][0]
    assert ((state == 0) & state.signbit()).any()
    assert ((state == 0) & ~state.signbit()).any()
    assert _assert_same_bits(s, steps) == 3 * (LAYERS + 1)


def test_a_ring_of_two_agrees_to_rounding_only(s, reference, tiny):
    """The must-differ beside the bit tests: their comparison can tell two orders of summation apart."""
    params = s.gates(tiny)
    packed = s.Pool(tiny, slots=1, ring=2)
    replay = packed.copy()
    for step in range(2):
        x = s.tokens(tiny, 1, seed=step)
        reference.packed_decode(**x, **params, temporal=packed.temporal[0], slots=s.ints(0))
        reference.replay_decode(**x, **params, **replay.layer(), write_pos=s.ints(step), slots=s.ints(0))
    reference.fold(**replay.tensors(), slots=s.ints(0), counts=s.ints(2))
    assert not s.same_bits(packed.temporal, replay.temporal)
    assert s.relative_error(replay.temporal, packed.temporal) < 1e-6
