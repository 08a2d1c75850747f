"""Sizes of a pool, and the bytes they cost."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from replaylife.pool import BYTES, Gate, PoolShape

from .support import small

# conv_dim = 2*2*4 + 4*3 = 28; a window is 3 layers * 28 * 3 inputs = 252 numbers.
GDN = {
    "temporal": 3 * 4 * 3 * 4 * 4,  # 576
    "conv": 252 * 2,
    "conv_checkpoint": 252 * 2,
    "ring_d": 3 * 5 * 4 * 3 * 4,  # 720
    "ring_k": 3 * 5 * 2 * 4 * 4,  # 480
    "ring_g": 3 * 5 * 4 * 4,  # 240
    "write_pos": 4,
}


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ({"layers": 0}, {"layers": 1}, "layers: 0, need at least 1"),
        ({"heads": 0}, {"heads": 1}, "heads: 0, need at least 1"),
        ({"value_heads": 0}, {"value_heads": 2}, "value_heads: 0, need at least 1"),
        ({"key_dim": -1}, {"key_dim": 1}, "key_dim: -1, need at least 1"),
        ({"value_dim": 0}, {"value_dim": 1}, "value_dim: 0, need at least 1"),
        ({"value_heads": 3}, {"value_heads": 6}, r"value_heads: 3, need a multiple of heads \(2\)"),
        ({"conv_width": 1}, {"conv_width": 2}, "conv_width: 1, need at least 2"),
        ({"ring_length": 0}, {"ring_length": 1}, "ring_length: 0, need 1 to 64"),
        ({"ring_length": 65}, {"ring_length": 64}, "ring_length: 65, need 1 to 64"),
    ],
)
def test_a_size_out_of_range_is_refused_by_name(
    wrong: dict[str, Any], right: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        small(**wrong)
    assert small(**right).slot_bytes() > 0


def test_no_ring_length_is_a_length_of_its_own() -> None:
    assert small(ring_length=None).ring_length is None


def test_the_convolution_runs_over_keys_queries_and_values_of_all_heads() -> None:
    assert small().conv_dim == 28


def test_component_bytes_are_those_counted_by_hand() -> None:
    assert small().component_bytes() == GDN
    assert small().slot_bytes() == 576 + 504 + 504 + 720 + 480 + 240 + 4 == 3028


def test_a_vector_gate_costs_a_number_per_key_column() -> None:
    assert small(gate="kda").component_bytes() == GDN | {"ring_g": 960}
    assert small(gate="kda").slot_bytes() == 3748


def test_with_replayssm_off_only_temporal_and_conv_are_left(gate: Gate) -> None:
    assert small(ring_length=None, gate=gate).component_bytes() == {"temporal": 576, "conv": 504}


def test_each_dtype_moves_its_own_components_and_gates_stay_fp32() -> None:
    assert small(state_dtype="bf16").component_bytes() == GDN | {"temporal": 288}
    assert small(conv_dtype="fp32").component_bytes() == GDN | {"conv": 1008, "conv_checkpoint": 1008}
    assert small(ring_dtype="fp16").component_bytes() == GDN | {"ring_d": 360, "ring_k": 240}


def test_slots_do_not_change_the_bytes_of_one_slot() -> None:
    assert small(slots=6).slot_bytes() == small(slots=600).slot_bytes()


def test_a_known_model_costs_what_the_formula_of_the_specification_says() -> None:
    shape = PoolShape(
        layers=36, slots=2, heads=16, value_heads=32, key_dim=128, value_dim=128, conv_width=4, ring_length=16
    )
    state, window = 32 * 128 * 128 * 4, 2 * (2 * 16 * 128 + 32 * 128) * 3 * 2
    ring = 16 * (32 * 128 + 16 * 128) * 4 + 16 * 32 * 4
    assert shape.slot_bytes() == 36 * (state + window + ring) + 4 == 93_265_924


def test_a_number_takes_four_bytes_or_two() -> None:
    assert BYTES == {"fp32": 4, "bf16": 2, "fp16": 2}


def test_a_shape_cannot_be_changed_behind_a_pools_back() -> None:
    with pytest.raises(AttributeError):
        small().layers = 9  # type: ignore[misc]


@pytest.mark.parametrize(
    ("code", "rc"),
    [("import replaylife.pool", 0), ("import replaylife.pool.tensors", 1)],
    ids=["pool", "tensors"],
)
def test_only_the_tensors_import_torch(code: str, rc: int) -> None:
    check = f"{code}; import sys; sys.exit(bool({{'torch', 'triton', 'numpy'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check], cwd="/", check=False).returncode == rc
