"""The convolution over a window: the live inputs stay until it is known how many tokens are kept."""

import pytest
import torch

WIDTH, CHANNELS, TOKENS = 4, 20, 6
SLOTS, LENGTHS = [2, 0, 1], [6, 3, 0]


def _setup(s, width=WIDTH, conv_dtype=torch.float32, rows=3, x_dtype=torch.float32):
    gen = torch.Generator().manual_seed(5)
    x = torch.randn(rows, TOKENS, CHANNELS, generator=gen).to(s.DEVICE, x_dtype)
    weight = torch.randn(CHANNELS, width, generator=gen).to(s.DEVICE)
    conv = torch.randn(4, CHANNELS, width - 1, generator=gen).to(s.DEVICE, conv_dtype)
    return x, weight, conv


@pytest.mark.parametrize("width", [2, 3, 4, 9])
def test_a_window_follows_the_float64_convolution(s, oracle, kernels, width):
    x, weight, conv = _setup(s, width=width)
    out, _ = kernels.conv_verify(x, weight, conv, s.ints(*SLOTS), s.ints(*LENGTHS))
    for row, (slot, length) in enumerate(zip(SLOTS[:2], LENGTHS[:2], strict=True)):
        ref = oracle.convolve(conv[slot], x[row, :length], weight)
        assert s.relative_error(out[row, :length], ref) < 1e-6


@pytest.mark.parametrize("conv_dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("width", [2, 4])
def test_after_any_number_kept_the_window_is_that_of_as_many_steps(s, kernels, conv_dtype, width):
    x, weight, conv = _setup(s, width=width, conv_dtype=conv_dtype)
    before = conv.clone()
    out, extended = kernels.conv_verify(x, weight, conv, s.ints(*SLOTS), s.ints(*LENGTHS))
    assert s.same_bits(conv, before)
    assert extended.shape == (3, CHANNELS, width - 1 + TOKENS)
    stepped, compared = conv.clone(), 0
    for t in range(TOKENS + 1):
        kept = [min(t, length) for length in LENGTHS]
        window = kernels.conv_at(extended, width, s.ints(*kept))
        assert window.is_contiguous()
        assert s.same_bits(window, stepped[SLOTS])
        compared += 1
        if t < TOKENS:
            active = [slot if t < length else -1 for slot, length in zip(SLOTS, LENGTHS, strict=True)]
            y = kernels.conv_step(x[:, t].contiguous(), weight, stepped, s.ints(*active))
            assert s.same_bits(out[:, t].contiguous(), y)
    assert compared == 7


def test_a_rejection_keeps_rejected_inputs_out_of_later_outputs(s, oracle, kernels):
    x, weight, conv = _setup(s, rows=1)
    start = conv[2].clone()
    _, extended = kernels.conv_verify(x, weight, conv, s.ints(2), s.ints(TOKENS))
    conv[[2]] = kernels.conv_at(extended, WIDTH, s.ints(2))
    other = torch.randn(1, 3, CHANNELS, generator=torch.Generator().manual_seed(6)).to(s.DEVICE)
    out, _ = kernels.conv_verify(other, weight, conv, s.ints(2), s.ints(3))
    ref = oracle.convolve(start, torch.cat([x[0, :2], other[0]]), weight)
    assert s.relative_error(out[0], ref[2:]) < 1e-6


def test_windows_of_all_layers_are_taken_at_once(s, kernels):
    x, weight, conv = _setup(s)
    _, extended = kernels.conv_verify(x, weight, conv, s.ints(*SLOTS), s.ints(*LENGTHS))
    layers = torch.stack([extended, extended + 1])
    both = kernels.conv_at(layers, WIDTH, s.ints(4, 1, 0))
    for layer in range(2):
        assert s.same_bits(both[layer], kernels.conv_at(layers[layer], WIDTH, s.ints(4, 1, 0)))
    assert not s.same_bits(both[0], both[1])


def test_padding_and_inputs_past_a_length_give_zeros(s, kernels):
    x, weight, conv = _setup(s)
    for row, length in enumerate(LENGTHS):
        x[row, length:] = torch.nan
    x[0] = torch.nan
    out, extended = kernels.conv_verify(x, weight, conv, s.ints(-1, 0, 1), s.ints(*LENGTHS))
    used = [[bool(token.any()) for token in row] for row in out]
    assert used == [[False] * 6, [True] * 3 + [False] * 3, [False] * 6]
    assert out.isfinite().all()
    assert not extended[0].any()
    assert extended[1, :, : WIDTH + 2].all()
    assert not extended[1, :, WIDTH + 2 :].any()
    assert s.same_bits(extended[2, :, : WIDTH - 1].contiguous(), conv[1])


def test_sixteen_bit_inputs_give_sixteen_bit_outputs(s, kernels):
    x, weight, conv = _setup(s, x_dtype=torch.bfloat16)
    out, extended = kernels.conv_verify(x, weight, conv, s.ints(*SLOTS), s.ints(*LENGTHS))
    ref, same = kernels.conv_verify(x.float(), weight, conv, s.ints(*SLOTS), s.ints(*LENGTHS))
    assert s.same_bits(out, ref.bfloat16())
    assert s.same_bits(extended, same)


def test_many_channels_use_several_tiles(s, twins):
    gen = torch.Generator().manual_seed(6)
    x = torch.randn(2, 5, 300, generator=gen).to(s.DEVICE)
    weight = torch.randn(300, WIDTH, generator=gen).to(s.DEVICE)
    conv = torch.randn(2, 300, WIDTH - 1, generator=gen).to(s.DEVICE)
    first, second = (kernels.conv_verify(x, weight, conv, s.ints(1, 0), s.ints(5, 4)) for kernels in twins)
    assert s.relative_error(second[0], first[0]) < 1e-6
    assert s.same_bits(second[1], first[1])
