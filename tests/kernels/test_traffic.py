"""Counted bytes of a step against the tensors that a kernel is given."""

import pytest
import torch

from replaylife.kernels.bench.case import DTYPES, Case, draw_inputs
from replaylife.kernels.bench.contenders import Replay
from replaylife.kernels.traffic import Traffic


@pytest.mark.parametrize("gate", ["gdn", "kda"])
@pytest.mark.parametrize("state", ["fp32", "bf16"])
def test_counted_bytes_are_those_of_the_tensors(s, gate, state):
    case = Case(gate, state, rows=3, ring=4, H=1, HV=2, K=16, V=8)
    generator = torch.Generator(s.DEVICE).manual_seed(0)
    states = torch.zeros(1, 4, case.HV, case.V, case.K, dtype=DTYPES[state], device=s.DEVICE)
    replay, x = Replay(case, states), draw_inputs(case, generator)
    traffic = Traffic(gate, case.H, case.HV, case.K, case.V, case.ring, state=states.element_size())
    assert traffic.state_bytes == states[0, 0].nbytes
    assert (
        traffic.record_bytes == sum(ring[0, 0].nbytes for ring in (replay.d, replay.k, replay.g)) / case.ring
    )
    out = x.v.nbytes
    assert traffic.token_bytes * case.rows == sum(t.nbytes for t in x[:5]) + out


def test_a_step_is_the_mean_over_the_positions_of_the_ring():
    traffic = Traffic("kda", H=2, HV=4, K=32, V=16, ring=8)
    steps = [
        traffic.state_bytes + position * traffic.record_bytes + traffic.record_bytes + traffic.token_bytes
        for position in range(8)
    ]
    assert traffic.read == sum(steps) / 8
    assert traffic.fused * 8 == sum(steps) + traffic.state_bytes
    assert traffic.apart * 8 == sum(steps) + 2 * traffic.state_bytes + 8 * traffic.record_bytes
