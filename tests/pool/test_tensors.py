"""The tensors that a shape allocates."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import pytest
import torch

from replaylife.pool import DType, Gate, PoolShape

from .support import CPU, NAMES, small, tensors_of

DTYPES: tuple[DType, ...] = get_args(DType)
RINGS = (None, 1, 5)


def _sweep() -> list[PoolShape]:
    return [
        small(gate=gate, state_dtype=state, conv_dtype=conv, ring_dtype=ring, ring_length=length)
        for gate, state, conv, ring, length in product(get_args(Gate), DTYPES, DTYPES, DTYPES, RINGS)
    ]


def _allocated(shape: PoolShape) -> dict[str, int]:
    tensors = tensors_of(shape)
    found = {name: getattr(tensors, name) for name in NAMES}
    return {name: tensor.nbytes for name, tensor in found.items() if tensor is not None}


def test_the_bytes_allocated_are_those_predicted_for_every_combination_of_types() -> None:
    ran = with_ring = 0
    for shape in _sweep():
        predicted = {name: size * shape.slots for name, size in shape.component_bytes().items()}
        assert _allocated(shape) == predicted, shape
        assert tensors_of(shape).nbytes() == shape.slots * shape.slot_bytes(), shape
        ran += 1
        with_ring += shape.ring_length is not None
    assert (ran, with_ring) == (162, 108)


def test_a_prediction_without_the_ring_falls_short_of_what_is_allocated() -> None:
    forgotten = small(ring_length=None).slot_bytes() * small().slots
    assert forgotten < tensors_of(small()).nbytes() / 2


def test_with_replayssm_off_ring_cursor_and_saved_window_do_not_exist(gate: Gate) -> None:
    tensors = tensors_of(small(ring_length=None, gate=gate))
    gone = ("ring_d", "ring_k", "ring_g", "conv_checkpoint", "write_pos")
    assert [getattr(tensors, name) for name in gone] == [None] * 5
    assert tensors.cursors() is None
    here = tensors_of(small(gate=gate))
    assert all(getattr(here, name) is not None for name in gone)


@pytest.mark.parametrize(("gate", "ring_g"), [("gdn", (3, 6, 4, 5)), ("kda", (3, 6, 4, 5, 4))])
def test_tensors_have_the_shapes_of_the_specification(gate: Gate, ring_g: tuple[int, ...]) -> None:
    tensors = tensors_of(small(gate=gate))
    assert {name: tuple(getattr(tensors, name).shape) for name in NAMES} == {
        "temporal": (3, 6, 4, 3, 4),
        "conv": (3, 6, 28, 3),
        "conv_checkpoint": (3, 6, 28, 3),
        "ring_d": (3, 6, 4, 5, 3),
        "ring_k": (3, 6, 2, 5, 4),
        "ring_g": ring_g,
        "write_pos": (6,),
    }


def test_each_dtype_goes_to_its_own_tensors_and_gates_stay_fp32() -> None:
    tensors = tensors_of(small(state_dtype="fp16", conv_dtype="bf16", ring_dtype="fp16"))
    assert {name: getattr(tensors, name).dtype for name in NAMES} == {
        "temporal": torch.float16,
        "conv": torch.bfloat16,
        "conv_checkpoint": torch.bfloat16,
        "ring_d": torch.float16,
        "ring_k": torch.float16,
        "ring_g": torch.float32,
        "write_pos": torch.int32,
    }


def test_the_two_windows_do_not_share_memory() -> None:
    tensors: Any = tensors_of(small())
    tensors.conv.fill_(1)
    assert not tensors.conv_checkpoint.any()


def test_indices_are_int32_on_the_pools_device() -> None:
    found = tensors_of(small()).indices([3, 1])
    assert (found.dtype, found.device, found.tolist()) == (torch.int32, CPU, [3, 1])


def test_a_fold_without_a_ring_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the pool has no ring \(ReplaySSM is off\), need ring_length"):
        tensors_of(small(ring_length=None)).fold([1], [1], [1])
    tensors = tensors_of(small())
    tensors.fold([1], [1], [1])
    assert tensors.kernels.launches == {"fold[torch]": 1}
