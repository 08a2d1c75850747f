"""The measuring itself: errors against float64, the table, and what could not be compared."""

import json
import math

import pytest
import torch

from replaylife.kernels.bench.accuracy import measure_errors
from replaylife.kernels.bench.case import Case, draw_inputs, draw_slots, draw_states
from replaylife.kernels.bench.compare import compare, measure, read_back
from replaylife.kernels.bench.contenders import Packed, Replay, ours
from replaylife.kernels.bench.peers import Peers
from replaylife.kernels.bench.report import lines


@pytest.fixture
def case():
    return Case("kda", "fp32", rows=2, ring=3, H=1, HV=2, K=16, V=16)


def test_our_contenders_are_exact(s, case):
    for make in ours(case):
        errors = measure_errors(case, make, s.DEVICE)
        assert max(errors) < 2e-6


class Wrong(Replay):
    """Forgets to decay: what a comparison must show."""

    def step(self, layer, x, slots, position):
        return super().step(layer, x._replace(dt_bias=x.dt_bias - 50.0), slots, position)


class Nothing(Replay):
    """Leaves its outputs unwritten."""

    def step(self, layer, x, slots, position):
        return torch.full_like(super().step(layer, x, slots, position), math.nan)


def test_a_wrong_contender_shows_in_its_errors(s, case):
    assert min(measure_errors(case, Wrong, s.DEVICE)) > 1e-3


def test_an_output_that_is_not_a_number_does_not_pass_for_a_small_error(s, case):
    assert math.isnan(measure_errors(case, Nothing, s.DEVICE).output)


@pytest.mark.skipif(torch.cuda.is_available(), reason="cursors cannot be read while a CUDA graph is captured")
def test_the_cursor_really_moves_in_lock_step(s, case):
    seen = []

    class Watched(Replay):
        def step(self, layer, x, slots, position):
            seen.append(tuple(position.tolist()))
            return super().step(layer, x, slots, position)

    measure(case, Watched, 1e12, s.DEVICE)
    assert {(0, 1), (0, 0), (1, 1), (2, 2)} <= set(seen)


def test_slots_are_distinct_and_in_random_order(s):
    generator = torch.Generator(s.DEVICE).manual_seed(3)
    slots = draw_slots(Case.yardstick("gdn", "fp32", 64), generator).tolist()
    assert sorted(slots) == list(range(1, 65)) != slots


def test_inputs_are_drawn_anew_and_are_never_zero(s, case):
    generator = torch.Generator(s.DEVICE).manual_seed(3)
    first, second = draw_inputs(case, generator), draw_inputs(case, generator)
    for name in first._fields:
        assert getattr(first, name).any(), name
        assert not torch.equal(getattr(first, name), getattr(second, name)), name
    assert draw_states(case, 2, generator).float().norm() > 1.0


def test_the_table_has_a_line_per_contender_and_says_what_is_missing(s, case):
    said = []
    report = compare([case], Peers(), s.DEVICE, said.append)
    assert said == ["kda, fp32 state, L 3, batch 2"]
    assert [line.name for line in report.lines] == ["packed (ours)", "replay (tuned)", "replay (reference)"]
    text = list(lines(report))
    assert sum("kda  fp32" in line for line in text) == 3
    assert any(line.startswith("not compared: sglang (") for line in text)
    again = read_back(json.loads(json.dumps(report.record())))
    assert list(lines(again)) == text


def test_a_peer_that_is_not_at_its_path_is_named_with_the_file(tmp_path):
    peers = Peers(sglang=tmp_path)
    assert "fused_recurrent_linear_replayssm.py: no such file" in peers.missing["sglang"]
    assert not list(peers.contenders(Case.yardstick("gdn", "fp32", 1)))


def test_packed_leaves_nothing_to_fold(s, case):
    states = draw_states(case, 1, torch.Generator(s.DEVICE).manual_seed(1))
    packed, before = Packed(case, states), states.clone()
    packed.fold(torch.ones(1, dtype=torch.int32), torch.ones(1, dtype=torch.int32))
    assert torch.equal(states, before)
    assert not packed.folds_apart
    assert Replay.folds_apart
