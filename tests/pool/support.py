"""Building blocks for pool tests: shapes, pools full of distinct numbers, and bitwise pictures of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from replaylife.kernels import Kernels
from replaylife.pool import MambaPool, PoolShape, Record
from replaylife.pool.tensors import PoolTensors

CPU = torch.device("cpu")
NAMES = ("temporal", "conv", "conv_checkpoint", "ring_d", "ring_k", "ring_g", "write_pos")
SMALL = PoolShape(
    layers=3, slots=6, heads=2, value_heads=4, key_dim=4, value_dim=3, conv_width=4, ring_length=5
)


def small(**changes: Any) -> PoolShape:
    return replace(SMALL, **changes)


def tensors_of(shape: PoolShape) -> PoolTensors:
    return PoolTensors(shape, Kernels.load("torch", CPU), CPU)


def tensor_pool(kind: type[MambaPool] = MambaPool, **changes: Any) -> MambaPool:
    shape = small(**changes)
    return kind(shape, tensors_of(shape))


def held(pool: MambaPool) -> PoolTensors:
    assert pool.tensors is not None
    return pool.tensors


def filled(pool: MambaPool, seed: int = 0) -> MambaPool:
    """Fill every tensor but the cursor with numbers that are nowhere zero; gates are negative."""
    generator = torch.Generator().manual_seed(seed)
    for name in NAMES[:-1]:
        tensor = getattr(held(pool), name)
        if tensor is not None:
            numbers = 0.25 + torch.rand(tensor.shape, generator=generator)
            tensor.copy_(-0.1 * numbers if name == "ring_g" else numbers)
    return pool


def picture(pool: MambaPool) -> dict[str, torch.Tensor]:
    """A copy of every tensor that exists."""
    found = {name: getattr(held(pool), name) for name in NAMES}
    return {name: tensor.clone() for name, tensor in found.items() if tensor is not None}


def changed_slots(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> dict[str, set[int]]:
    """The slots whose bits differ, per tensor; tensors without a difference are left out."""
    assert before.keys() == after.keys()
    changed: dict[str, set[int]] = {}
    for name, old in before.items():
        axis = 0 if name == "write_pos" else 1
        rows = (old != after[name]).transpose(0, axis).flatten(start_dim=1 if old.dim() > 1 else 0)
        differs = rows if rows.dim() == 1 else rows.any(dim=1)
        if bool(differs.any()):
            changed[name] = set(differs.nonzero().flatten().tolist())
    return changed


def records(*tokens: int, request: str = "r", start: int = 0) -> tuple[Record, ...]:
    return tuple(Record(request, start + index, token) for index, token in enumerate(tokens))


def decode(pool: MambaPool, slot: int, count: int, first: int = 100) -> None:
    """Book ``count`` decode steps of ``slot`` (the tensors keep what they were filled with)."""
    for record in records(*range(first, first + count)):
        pool.append([(slot, record)])
        pool.advance([slot])
