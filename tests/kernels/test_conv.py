"""The short convolution: one arithmetic, wherever a chunk ends."""

import pytest
import torch

WIDTH, CHANNELS = 4, 20


def _setup(s, slots=3, tokens=9, x_dtype=torch.float32, conv_dtype=torch.float32, width=WIDTH):
    gen = torch.Generator().manual_seed(5)
    x = torch.randn(tokens, CHANNELS, generator=gen).to(s.DEVICE, x_dtype)
    weight = torch.randn(CHANNELS, width, generator=gen).to(s.DEVICE)
    conv = torch.randn(slots, CHANNELS, width - 1, generator=gen).to(s.DEVICE, conv_dtype)
    return x, weight, conv


def _in_chunks(s, kernels, x, weight, conv, slot, sizes):
    outs, start = [], 0
    for size in sizes:
        part = x[start : start + size].contiguous()
        outs.append(kernels.conv_prefill(part, weight, conv, s.ints(slot), s.ints(0, size)))
        start += size
    assert start == x.shape[0]
    return torch.cat(outs)


@pytest.mark.parametrize("width", [2, 4])
def test_both_forms_follow_the_float64_convolution(s, oracle, kernels, width):
    x, weight, conv = _setup(s, width=width)
    ref = oracle.convolve(conv[1], x, weight)
    piece = kernels.conv_prefill(x, weight, conv.clone(), s.ints(1), s.ints(0, 9))
    steps = torch.cat([kernels.conv_step(row[None].contiguous(), weight, conv, s.ints(1)) for row in x])
    assert s.relative_error(piece, ref) < 1e-6
    assert s.relative_error(steps, ref) < 1e-6


@pytest.mark.parametrize("conv_dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_a_prefill_in_any_chunks_equals_steps_in_every_bit(s, kernels, conv_dtype):
    x, weight, conv = _setup(s, conv_dtype=conv_dtype)
    stepped = conv.clone()
    ref = torch.cat([kernels.conv_step(row[None].contiguous(), weight, stepped, s.ints(1)) for row in x])
    chunkings = [(9,), (1, 8), (2, 7), (3, 3, 3), (8, 1), (1, 1, 7), (4, 0, 5)]
    for sizes in chunkings:
        chunked = conv.clone()
        out = _in_chunks(s, kernels, x, weight, chunked, 1, sizes)
        assert s.same_bits(out, ref), sizes
        assert s.same_bits(chunked, stepped), sizes
    assert len(chunkings) == 7
    assert not s.same_bits(stepped, conv)


def test_an_input_is_rounded_to_the_conv_dtype_before_it_is_used(s, kernels):
    x, weight, conv = _setup(s, conv_dtype=torch.bfloat16)
    rounded = x.bfloat16().float()
    outs = [
        kernels.conv_prefill(inputs, weight, conv.clone(), s.ints(1), s.ints(0, 9)) for inputs in (x, rounded)
    ]
    assert not s.same_bits(x, rounded)
    assert s.same_bits(*outs)


def test_short_sequences_keep_older_inputs(s, kernels):
    x, weight, conv = _setup(s, tokens=2)
    before = conv.clone()
    kernels.conv_prefill(x, weight, conv, s.ints(0, 2), s.ints(0, 1, 2))
    for row, slot in enumerate((0, 2)):
        assert s.same_bits(conv[slot, :, :2].contiguous(), before[slot, :, 1:].contiguous())
        assert s.same_bits(conv[slot, :, 2].contiguous(), x[row])
    assert s.same_bits(conv[1], before[1])


def test_packed_sequences_do_not_see_each_other(s, kernels):
    x, weight, conv = _setup(s)
    alone, together = conv.clone(), conv.clone()
    out = kernels.conv_prefill(x, weight, together, s.ints(2, 0), s.ints(0, 2, 9))
    first = kernels.conv_prefill(x[:2].contiguous(), weight, alone, s.ints(2), s.ints(0, 2))
    second = kernels.conv_prefill(x[2:].contiguous(), weight, alone, s.ints(0), s.ints(0, 7))
    assert s.same_bits(out, torch.cat([first, second]))
    assert s.same_bits(together, alone)


def test_padding_writes_nothing_and_outputs_zero(s, kernels):
    x, weight, conv = _setup(s)
    before = conv.clone()
    out = kernels.conv_prefill(x, weight, conv, s.ints(-1, 1), s.ints(0, 4, 9))
    assert not out[:4].any()
    assert out[4:].any()
    assert s.same_bits(conv[::2].contiguous(), before[::2].contiguous())
    assert not s.same_bits(conv[1], before[1])
    conv.copy_(before)
    out = kernels.conv_step(x[:3].contiguous(), weight, conv, s.ints(-1, 2, -1))
    assert [bool(row.any()) for row in out] == [False, True, False]
    assert s.same_bits(conv[:2], before[:2])
    assert not s.same_bits(conv[2], before[2])


def test_long_sequences_and_many_channels_use_several_tiles(s, twins):
    gen = torch.Generator().manual_seed(6)
    x = torch.randn(150, 300, generator=gen).to(s.DEVICE)
    weight = torch.randn(300, WIDTH, generator=gen).to(s.DEVICE)
    conv = torch.randn(2, 300, WIDTH - 1, generator=gen).to(s.DEVICE)
    windows = [conv.clone() for _ in twins]
    outs = [
        kernels.conv_prefill(x, weight, window, s.ints(1, 0), s.ints(0, 80, 150))
        for kernels, window in zip(twins, windows, strict=True)
    ]
    assert s.relative_error(outs[1], outs[0]) < 1e-6
    assert s.same_bits(*windows)
    steps = [
        kernels.conv_step(x[:2].contiguous(), weight, window, s.ints(1, 0))
        for kernels, window in zip(twins, windows, strict=True)
    ]
    assert s.relative_error(steps[1], steps[0]) < 1e-6
    assert s.same_bits(*windows)
