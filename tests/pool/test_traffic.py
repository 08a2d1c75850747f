"""Bytes of a decode step against L: hand counts, the benchmark's count, and the tensors that a step takes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import get_args

import pytest
import torch

from replaylife.kernels.bench.case import Case, draw_inputs
from replaylife.kernels.bench.compare import _minimal_bytes
from replaylife.kernels.tiles import State, table
from replaylife.kernels.traffic import Traffic
from replaylife.pool import BYTES, Gate, PoolShape
from replaylife.pool.traffic import Moved, against_ring, floor_us, measured, where_it_pays

GATES: tuple[Gate, ...] = get_args(Gate)
STATES: tuple[State, ...] = get_args(State)
CASES = list(product(GATES, STATES, (1, 4, 16, 64)))


class Named:
    def __init__(self, name: str) -> None:
        self.name = name


def of_case(case: Case) -> Traffic:
    return Traffic(case.gate, case.H, case.HV, case.K, case.V, case.ring, state=BYTES[case.state])


@pytest.mark.parametrize(("gate", "state", "ring"), CASES)
def test_the_bytes_are_those_that_the_benchmark_counts(gate: Gate, state: State, ring: int) -> None:
    case = Case.yardstick(gate, state, 1, ring)
    moved = Moved.count(of_case(case))
    assert moved.packed * case.HV == _minimal_bytes(case, Named("packed (tuned)"))  # type: ignore[arg-type]
    assert moved.fused * case.HV == _minimal_bytes(case, Named("replay (tuned)"))  # type: ignore[arg-type]


@pytest.mark.parametrize("gate", GATES)
def test_the_bytes_of_a_token_are_those_of_the_tensors_it_is_given(gate: Gate) -> None:
    case = Case.yardstick(gate, "fp32", 3)
    x = draw_inputs(case, torch.Generator().manual_seed(0))
    output = x.v.nbytes
    given = sum(t.nbytes for t in (x.q, x.k, x.v, x.a, x.b))
    assert of_case(case).token_bytes * case.rows == given + output


@pytest.mark.parametrize(("gate", "state"), list(product(GATES, STATES)))
def test_state_and_record_bytes_are_those_of_the_pool(gate: Gate, state: State) -> None:
    case = Case.yardstick(gate, state, 1, 16)
    shape = PoolShape(1, 2, case.H, case.HV, case.K, case.V, 4, 16, gate, state, ring_key_dtype="bf16")
    sizes, traffic = shape.component_bytes(), of_case(case)
    assert sizes["temporal"] == traffic.state_bytes
    assert sizes["ring_d"] + sizes["ring_k"] + sizes["ring_g"] == 16 * traffic.record_bytes


def test_the_specification_s_numbers_for_a_head_of_128_come_out() -> None:
    state = 4 * 128 * 128
    for ring in (2, 4, 16):
        traffic = Traffic("gdn", 16, 32, 128, 128, ring)
        token, record = traffic.token_bytes, traffic.record_bytes
        moved = Moved.count(traffic)
        assert moved.packed * 32 == 32 * 2 * state + token
        assert moved.fused * 32 == pytest.approx(
            32 * state * (1 + 1 / ring) + (ring + 1) / 2 * record + token
        )
        assert moved.apart * 32 == pytest.approx(
            32 * state * (1 + 2 / ring) + (ring + 1) / 2 * record + record + token
        )


def test_at_a_ring_of_one_replay_never_pays() -> None:
    for gate, state in product(GATES, STATES):
        (moved,) = against_ring(Traffic(gate, 16, 32, 128, 128, 16, state=BYTES[state]), [1])
        assert moved.packed < moved.fused < moved.apart


def test_a_vector_gate_with_a_two_byte_state_stops_paying_at_a_ring_that_a_scalar_gate_still_gains_from() -> (
    None
):
    kda = where_it_pays(Traffic("kda", 32, 32, 128, 128, 16, state=2))
    gdn = where_it_pays(Traffic("gdn", 16, 32, 128, 128, 16, state=2))
    assert (kda.first, kda.last, kda.best) == (3, 45, 10)
    assert gdn.last == 64
    assert gdn.best > kda.best


def test_the_bounds_of_paying_are_where_the_bytes_cross() -> None:
    traffic = Traffic("kda", 32, 32, 128, 128, 16, state=2)
    pays = where_it_pays(traffic)
    assert pays.first is not None
    assert pays.last is not None
    crossing = against_ring(traffic, [pays.first - 1, pays.first, pays.last, pays.last + 1])
    assert [moved.apart < moved.packed for moved in crossing] == [False, True, True, False]


def test_where_no_ring_pays_it_says_so() -> None:
    tiny = where_it_pays(Traffic("kda", 4, 4, 4, 4, 16, state=2))
    assert (tiny.first, tiny.last) == (None, None)


def test_a_floor_is_bytes_over_bandwidth() -> None:
    assert floor_us(4.8e12, 4.8e12) == 1e6
    assert floor_us(48_000, 4.8e12) == pytest.approx(0.01)


def test_a_measured_time_is_shown_for_the_case_that_was_measured_and_for_no_other() -> None:
    traffic = Traffic("gdn", 16, 32, 128, 128, 16)
    times = measured(traffic, "fp32", 256)
    assert times is not None
    assert times.rows == 256
    others = [
        (replace(traffic, HV=48), "fp32", 256),
        (replace(traffic, ring=15), "fp32", 256),
        (replace(traffic, d=2), "fp32", 256),
        (replace(traffic, H=8), "fp32", 256),
        (traffic, "fp32", 255),
        (traffic, "bf16", 256),
    ]
    assert [measured(*other) for other in others] == [None] * 6  # type: ignore[arg-type]


def test_no_measured_time_is_below_the_floor_of_the_card_it_was_measured_on() -> None:
    ran = 0
    for gate, state, ring in CASES:
        traffic = of_case(Case.yardstick(gate, state, 1, ring))
        times = measured(traffic, state, 512)
        assert times is not None
        assert times.packed_us > floor_us(512 * traffic.packed, 4.8e12)
        assert times.decode_us + times.fold_us > floor_us(512 * traffic.fused, 4.8e12)
        ran += 1
    assert ran == 24
    assert table().measured_on["card"] == "NVIDIA H200"
