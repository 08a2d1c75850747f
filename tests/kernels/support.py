"""Shapes, inputs and pools for the kernel tests."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Shape:
    """Heads and head sizes of one layer; `vector` is the KDA gate."""

    H: int
    HV: int
    K: int
    V: int
    vector: bool

    @property
    def label(self):
        return f"{'kda' if self.vector else 'gdn'}-{self.H}-{self.HV}-{self.K}-{self.V}"


TINY = (Shape(1, 2, 16, 8, False), Shape(1, 2, 16, 8, True))  # two value heads share a key head
ODD = (Shape(2, 2, 12, 5, False), Shape(2, 2, 12, 5, True))  # no size is a power of two
YARDSTICK = (Shape(16, 32, 128, 128, False), Shape(32, 32, 128, 128, True))
ON_CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_CUDA else "cpu")
SHAPES = TINY + (YARDSTICK if ON_CUDA else ())
FLOATS = (torch.float32, torch.bfloat16, torch.float16)
BITS = {torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float16: torch.int16}


def ints(*values):
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


def tokens(shape, count, seed, dtype=torch.float32):
    """Raw inputs of `count` tokens (or rows), each `[count, ...]`."""
    gen = torch.Generator().manual_seed(seed)

    def draw(*size):
        return torch.randn(*size, generator=gen).to(DEVICE, dtype)

    gate = (shape.HV, shape.K) if shape.vector else (shape.HV,)
    return {
        "q": draw(count, shape.H, shape.K),
        "k": draw(count, shape.H, shape.K),
        "v": draw(count, shape.HV, shape.V),
        "a": draw(count, *gate),
        "b": draw(count, shape.HV),
    }


def gates(shape, seed=99):
    """`A_log` and `dt_bias` that keep most decays between 0.9 and 0.999."""
    gen = torch.Generator().manual_seed(seed)
    size = (shape.HV, shape.K) if shape.vector else (shape.HV,)
    return {
        "A_log": (torch.rand(shape.HV, generator=gen) - 1.0).to(DEVICE),
        "dt_bias": (torch.rand(*size, generator=gen) - 4.0).to(DEVICE),
    }


class Pool:
    """Tensors of `layers` layers; the rings start full of NaN, the states random."""

    def __init__(self, shape, slots, ring, dtype=torch.float32, layers=1, seed=7, ring_dtype=torch.float32):
        gen = torch.Generator().manual_seed(seed)
        lead = (layers, slots)
        gate = (ring, shape.K) if shape.vector else (ring,)
        state = torch.randn(*lead, shape.HV, shape.V, shape.K, generator=gen)
        self.temporal = state.to(DEVICE, dtype)
        self.ring_d = torch.full((*lead, shape.HV, ring, shape.V), torch.nan, dtype=ring_dtype, device=DEVICE)
        self.ring_k = torch.full((*lead, shape.H, ring, shape.K), torch.nan, dtype=ring_dtype, device=DEVICE)
        self.ring_g = torch.full((*lead, shape.HV, *gate), torch.nan, device=DEVICE)

    def tensors(self):
        return {name: getattr(self, name) for name in ("temporal", "ring_d", "ring_k", "ring_g")}

    def layer(self, index=0):
        return {name: tensor[index] for name, tensor in self.tensors().items()}

    def copy(self):
        twin = object.__new__(Pool)
        for name, tensor in self.tensors().items():
            setattr(twin, name, tensor.clone())
        return twin


def fill(kernels, pool, slots, depths, shape, params, layers=1, seed=1000):
    """Decode each slot until its ring holds `depths` records; returns the tokens per layer and row."""
    seen = [[[] for _ in depths] for _ in range(layers)]
    for step in range(max(depths, default=0)):
        active = [slot if step < depth else -1 for slot, depth in zip(slots, depths, strict=True)]
        for layer in range(layers):
            x = tokens(shape, len(slots), seed=seed + 10 * step + layer)
            kernels.replay_decode(
                **x, **params, **pool.layer(layer), write_pos=ints(*[step] * len(slots)), slots=ints(*active)
            )
            for row, depth in enumerate(depths):
                if step < depth:
                    seen[layer][row].append({name: value[row] for name, value in x.items()})
    return [
        [{name: torch.stack([t[name] for t in row]) for name in row[0]} if row else None for row in per_layer]
        for per_layer in seen
    ]


def same_bits(x, y):
    return x.dtype == y.dtype and torch.equal(x.view(BITS[x.dtype]), y.view(BITS[y.dtype]))


def relative_error(x, ref):
    """Frobenius error of `x` relative to `ref`, which must not vanish."""
    ref = ref.detach().cpu().double()
    norm = ref.norm().item()
    assert norm > 1e-3, "a comparison on zeros proves nothing"
    return (x.detach().cpu().double() - ref).norm().item() / norm
