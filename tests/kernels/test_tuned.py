"""The tuned kernels at every ring length, tile and format, and over a long life."""

import itertools

import pytest
import torch

from replaylife.kernels import Kernels, RingFormat
from replaylife.kernels.tiles import DecodeTile, FoldTile

FORMATS = [
    RingFormat(keys, gates)
    for keys, gates in itertools.product(("raw", "normalised"), ("step", "cumulative"))
]


def _life(s, oracle, kernels, shape, ring, steps, fold_at=None, **tiles):
    """Decode `steps` tokens, folding full rings and at `fold_at`; the worst output and state errors."""
    params = s.gates(shape)
    pool = s.Pool(shape, slots=3, ring=ring)
    slots, state = s.ints(2), pool.temporal[0, 2].cpu().double()
    errors, pending = [], 0
    for step in range(steps):
        x = s.tokens(shape, 1, seed=step)
        out = kernels.replay_decode(
            **x, **params, **pool.layer(), write_pos=s.ints(pending), slots=slots, **tiles.get("decode", {})
        )
        ref, state = oracle.step(state, **{name: value[0] for name, value in x.items()}, **params)
        errors.append(s.relative_error(out[0], ref))
        pending += 1
        if pending == ring or step == fold_at:
            kernels.fold(**pool.tensors(), slots=slots, counts=s.ints(pending), **tiles.get("fold", {}))
            pending = 0
    kernels.fold(**pool.tensors(), slots=slots, counts=s.ints(pending), **tiles.get("fold", {}))
    return max(errors), s.relative_error(pool.temporal[0, 2], state)


@pytest.mark.parametrize("ring", [1, 2, 3, 5, 8, 13, 16, 17, 31, 32, 33, 64])
def test_any_ring_length_is_exact(s, oracle, tiny, ring):
    kernels = Kernels.load("triton", s.DEVICE)
    output, state = _life(s, oracle, kernels, tiny, ring, min(ring + 2, 36))
    assert output < 5e-6
    assert state < 1e-6


@pytest.mark.parametrize("position", range(6))
def test_a_forced_fold_at_every_position_is_exact(s, oracle, tiny, position):
    kernels = Kernels.load("triton", s.DEVICE)
    output, state = _life(s, oracle, kernels, tiny, 6, 9, fold_at=position)
    assert output < 5e-6
    assert state < 1e-6


@pytest.mark.parametrize("ring", FORMATS, ids=lambda ring: f"{ring.keys}-{ring.gates}")
@pytest.mark.parametrize("backend", ["torch", "triton"])
def test_every_ring_format_is_exact(s, oracle, tiny, ring, backend):
    output, state = _life(s, oracle, Kernels.load(backend, s.DEVICE, ring), tiny, 5, 12)
    assert output < 5e-6
    assert state < 1e-6


TILES = [(8, 4, 8, 16), (16, 8, 8, 16), (16, 2, 4, 32), (4, 8, 8, 16)]


@pytest.mark.parametrize(("BK", "BV", "VS", "side"), TILES)
def test_any_tile_is_exact_on_any_size(s, oracle, tiny, odd, BK, BV, VS, side):
    kernels = Kernels.load("triton", s.DEVICE)
    tiles = {
        "decode": {"tile": DecodeTile(BK, BV, VS, 1, 2)},
        "fold": {"tile": FoldTile(side, 16, 16, 1, 2)},
    }
    for shape in (tiny, odd):
        output, state = _life(s, oracle, kernels, shape, 3, 7, **tiles)
        assert output < 5e-6
        assert state < 1e-6


def test_a_thousand_steps_do_not_drift(s, oracle, tiny):
    kernels = Kernels.load("triton" if s.ON_CUDA else "torch", s.DEVICE)
    output, state = _life(s, oracle, kernels, tiny, 16, 1000)
    assert output < 1e-5
    assert state < 1e-6


def test_a_dropped_record_is_seen_by_these_bounds(s, oracle, tiny):
    """The bounds above are tight enough to tell: one record fewer is another state."""

    class Forgetful(Kernels):
        def fold(self, *arguments, counts, **named):
            super().fold(*arguments, counts=(counts - 1).clamp(min=0), **named)

    _, state = _life(s, oracle, Forgetful.load("torch", s.DEVICE), tiny, 5, 12)
    assert state > 1e-3


def test_a_two_byte_ring_beside_a_key_of_nothing_stays_finite(s, kernels, tiny):
    params = s.gates(tiny)
    pool = s.Pool(tiny, slots=1, ring=2, ring_dtype=torch.float16)
    x = s.tokens(tiny, 1, seed=1)
    x["k"] = torch.zeros_like(x["k"])
    x["v"] = x["v"] * 1000.0
    before = pool.temporal.clone()
    kernels.replay_decode(**x, **params, **pool.layer(), write_pos=s.ints(0), slots=s.ints(0))
    kernels.fold(**pool.tensors(), slots=s.ints(0), counts=s.ints(1))
    assert pool.ring_d[:, :, :, 0].isfinite().all()
    assert pool.temporal.isfinite().all()
    assert pool.temporal.norm() <= before.norm()


def test_the_reference_kernels_take_their_own_format_only(s):
    with pytest.raises(ValueError, match=r"ring: .*need .*normalised.*step.* for the reference kernels"):
        Kernels.load("triton", s.DEVICE, RingFormat("raw", "step"), tuned=False)
    with pytest.raises(ValueError, match="ring gates: 'sum', need one of step, cumulative"):
        Kernels.load("torch", s.DEVICE, RingFormat("raw", "sum"))
