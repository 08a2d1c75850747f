"""What a budget holds, and what the sizes of public models come to."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import get_args

import pytest

from replaylife.pool import DType, PoolShape
from replaylife.pool.budget import Budget
from replaylife.pool.presets import PRESETS, Preset

from .support import small, tensors_of

DTYPES: tuple[DType, ...] = get_args(DType)


def scaled_down(shape: PoolShape) -> PoolShape:
    """The same pool with two layers and heads of a sixteenth: proportions kept, small enough to allocate."""
    return replace(shape, layers=2, slots=3, key_dim=shape.key_dim // 16, value_dim=shape.value_dim // 16)


def test_the_bytes_allocated_for_every_preset_scaled_down_are_those_predicted() -> None:
    ran = 0
    for preset, ring, tp, state in product(PRESETS.values(), (None, 1, 16), (1, 4), DTYPES):
        conv, keys = DTYPES[ran % 3], DTYPES[(ran + 1) % 3]
        shape = scaled_down(
            preset.shape(
                ring_length=ring, tensor_parallel=tp, state_dtype=state, conv_dtype=conv, ring_key_dtype=keys
            )
        )
        assert tensors_of(shape).nbytes() == 3 * shape.slot_bytes(), (preset.name, shape)
        ran += 1
    assert ran == len(PRESETS) * 18 >= 162


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.name)
def test_ranks_together_hold_the_whole_state(preset: Preset) -> None:
    whole = preset.shape(ring_length=16).component_bytes()
    for ranks in (2, 4, 8, 16):
        part = preset.shape(ring_length=16, tensor_parallel=ranks).component_bytes()
        cursor = part.pop("write_pos")
        assert cursor == 4, "every rank has the whole cursor"
        assert {name: size * ranks for name, size in part.items()} == {
            name: size for name, size in whole.items() if name != "write_pos"
        }


def test_heads_that_cannot_be_divided_are_refused_with_the_numbers_that_can() -> None:
    with pytest.raises(ValueError, match=r"tensor_parallel: 3, need a divisor of the 16 key heads .*1, 2, 4"):
        PRESETS["Qwen3.5-27B"].shape(ring_length=16, tensor_parallel=3)


def test_a_slot_of_qwen3_next_costs_what_its_configuration_says_by_hand() -> None:
    shape = PRESETS["Qwen3-Next-80B-A3B-Instruct"].shape(ring_length=16)
    assert shape.component_bytes() == {
        "temporal": 36 * 32 * 128 * 128 * 4,
        "conv": 36 * 8192 * 3 * 2,
        "conv_checkpoint": 36 * 8192 * 3 * 2,
        "ring_d": 36 * 32 * 16 * 128 * 4,
        "ring_k": 36 * 16 * 16 * 128 * 4,
        "ring_g": 36 * 32 * 16 * 4,
        "write_pos": 4,
    }


def test_every_preset_says_where_its_sizes_were_published() -> None:
    assert len(PRESETS) >= 9
    assert all(preset.source.startswith("https://") for preset in PRESETS.values())


def test_a_budget_holds_as_many_slots_as_fit_and_not_one_more() -> None:
    shape = small()
    size = shape.slot_bytes()
    for num_bytes, slots in ((0, 0), (size - 1, 0), (size, 1), (7 * size + 3, 7)):
        assert Budget(shape, num_bytes).slots == slots
    assert Budget(shape, 7 * size).usable == 6, "slot 0 is reserved"
    assert Budget(shape, 0).usable == 0


def test_a_formula_without_the_ring_overruns_by_the_bytes_of_the_slots_it_promises_too_many() -> None:
    shape, ringless = small(), small(ring_length=None)
    budget = Budget(shape, 100 * ringless.slot_bytes())
    assert budget.ringless_slots == 100
    allocated = tensors_of(replace(shape, slots=100)).nbytes()
    assert budget.ringless_bytes == allocated
    assert budget.overshoot == allocated - budget.num_bytes > 0


def test_without_replayssm_the_two_formulas_are_one() -> None:
    budget = Budget(small(ring_length=None), 1_000_000)
    assert budget.ringless_slots == budget.slots
    assert budget.overshoot == 0
