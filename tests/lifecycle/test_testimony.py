"""The witness: what the tensors say they have absorbed, right and after each way of spoiling them."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

import pytest
import torch

from replaylife.lifecycle.actions import Admit, Finish, Forward, Prefill
from replaylife.lifecycle.config import CacheConfig, EngineConfig, ModelConfig
from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.model.testimony import Testimony
from replaylife.pool import MambaPool
from replaylife.pool.tensors import PoolTensors

PROMPT = tuple(range(40, 50))
STATE = frozenset({"temporal"})


class _Stage:
    """A witness engine whose request ``a`` has 10 prompt tokens in temporal and 5 records in its ring."""

    def __init__(self, *, ring_length: int = 16, replayssm: bool = True, **model: Any) -> None:
        dtype = model.get("state_dtype", "fp32")
        cache = CacheConfig(slots=8, ring_length=ring_length, replayssm=replayssm, ring_dtype=dtype)
        config = EngineConfig(ModelConfig(witness=True, **model), cache, backend="torch")
        self.engine: ReferenceEngine = EngineFactory(config).build()
        self.compared = 0
        for action in (Admit("a", PROMPT), Prefill("a", 6), Prefill("a", 4), *[Forward(("a",))] * 5):
            self.play(action)
        self.slot = self.engine.requests["a"].held_slot

    def play(self, action: Any) -> None:
        self.engine.apply(action)
        measured = self.engine.snapshot().measurements
        assert [m for m in measured if m.error or m.kind != "witness"] == []
        self.compared += len(measured)

    @property
    def pool(self) -> MambaPool:
        return self.engine.store.pool

    @property
    def tensors(self) -> PoolTensors:
        assert self.pool.tensors is not None
        return self.pool.tensors

    @property
    def testimony(self) -> Testimony:
        found: Testimony = self.engine.compute.testimony  # type: ignore[attr-defined]
        return found

    def wrong(self) -> frozenset[str]:
        """The components of the slot that differ from the ledger; all of them have absorbed something."""
        measured = self.testimony.measure(self.slot)
        assert min(m.position for m in measured) > 0
        return frozenset(m.component for m in measured if m.error)

    def fold(self, count: int, *, again: int = 0) -> None:
        """Book a full fold of 5 records, having folded ``count`` of them and then the first ``again``."""
        before = self.tensors.temporal.clone()
        self.pool.fold([self.slot])
        self.tensors.temporal.copy_(before)
        self.tensors.fold([self.slot], [count], [self.slot])
        if again:
            self.tensors.fold([self.slot], [again], [self.slot])


@cache
def _played(state_dtype: str) -> _Stage:
    return _Stage(state_dtype=state_dtype)


@pytest.fixture
def stage(state_dtype: str) -> _Stage:
    """A stage of one's own to spoil."""
    return deepcopy(_played(state_dtype))


def _swap(tensor: torch.Tensor, axis: int, first: int, second: int) -> None:
    """Swap two indices along ``axis`` in place; they must differ."""
    one, other = tensor.select(axis, first).clone(), tensor.select(axis, second).clone()
    assert not torch.equal(one, other)
    tensor.select(axis, first).copy_(other)
    tensor.select(axis, second).copy_(one)


def test_an_untouched_slot_says_what_the_ledger_says(stage: _Stage) -> None:
    assert stage.pool.pending(stage.slot) == 5
    components = [m.component for m in stage.testimony.measure(stage.slot)]
    assert components == ["temporal", "conv", "conv_checkpoint", "ring_d", "ring_k", "ring_g"]
    assert stage.wrong() == frozenset()


@pytest.mark.parametrize("conv_dtype", ["fp32", "bf16"])
def test_a_whole_conversation_agrees_after_every_action(gate: str, conv_dtype: str, state_dtype: str) -> None:
    stage = _Stage(ring_length=4, gate=gate, conv_dtype=conv_dtype, state_dtype=state_dtype)
    for action in (*[Forward(("a",))] * 8, Finish("a"), Admit("b", (*PROMPT, 1, 2)), Prefill("b", 2)):
        stage.play(action)
    assert stage.engine.requests["b"].cached == 10
    assert stage.compared >= 80


def test_with_replayssm_off_the_packed_decode_agrees_too(gate: str, state_dtype: str) -> None:
    stage = _Stage(replayssm=False, gate=gate, state_dtype=state_dtype)
    assert stage.pool.ledger.slots[stage.slot].temporal.length == 15
    assert [m.component for m in stage.testimony.measure(stage.slot)] == ["temporal", "conv"]
    assert stage.wrong() == frozenset()
    _swap(stage.tensors.temporal[:, stage.slot], 1, 0, 1)
    assert stage.wrong() == STATE


def test_a_record_dropped_from_a_fold_is_caught(stage: _Stage) -> None:
    stage.fold(count=4)
    assert stage.wrong() == STATE


def test_all_records_folded_pass(stage: _Stage) -> None:
    stage.fold(count=5)
    assert stage.wrong() == frozenset()
    assert stage.pool.ledger.slots[stage.slot].temporal.length == 15


def test_a_record_folded_twice_is_caught(stage: _Stage) -> None:
    stage.fold(count=5, again=1)
    assert stage.wrong() == STATE


def test_all_records_folded_twice_are_caught(stage: _Stage) -> None:
    stage.fold(count=5, again=5)
    assert stage.wrong() == STATE


def test_a_token_prefilled_twice_is_caught(stage: _Stage) -> None:
    network = stage.engine.compute._network  # type: ignore[attr-defined]
    windows = stage.tensors.conv.clone()
    network.prefill(PROMPT[3:4], 3, stage.slot)
    stage.tensors.conv.copy_(windows)
    assert stage.wrong() >= STATE
    assert stage.testimony.spelled(stage.slot)[3] == (PROMPT[3], 2)


def test_two_swapped_value_heads_are_caught_and_swapped_back_pass(stage: _Stage) -> None:
    state = stage.tensors.temporal[:, stage.slot]  # [layers, HV, V, K]
    _swap(state, 1, 0, 1)
    assert stage.wrong() == STATE
    _swap(state, 1, 0, 1)
    assert stage.wrong() == frozenset()


def test_two_value_heads_of_one_layer_swapped_are_caught(stage: _Stage) -> None:
    _swap(stage.tensors.temporal[1, stage.slot], 0, 0, 1)
    assert stage.wrong() == STATE


@pytest.mark.parametrize("component", ["temporal", "conv", "conv_checkpoint", "ring_d"])
def test_two_swapped_layers_are_caught_and_swapped_back_pass(stage: _Stage, component: str) -> None:
    tensor = getattr(stage.tensors, component)[:, stage.slot]
    _swap(tensor, 0, 0, 1)
    assert stage.wrong() == {component}
    _swap(tensor, 0, 0, 1)
    assert stage.wrong() == frozenset()


@pytest.mark.parametrize("component", ["conv", "conv_checkpoint"])
@pytest.mark.parametrize("shift", [1, -1])
def test_a_window_shifted_by_one_is_caught_and_shifted_back_passes(
    stage: _Stage, component: str, shift: int
) -> None:
    window = getattr(stage.tensors, component)[:, stage.slot]
    window.copy_(window.roll(shift, dims=-1))
    assert stage.wrong() == {component}
    window.copy_(window.roll(-shift, dims=-1))
    assert stage.wrong() == frozenset()


def test_a_live_window_where_the_saved_one_belongs_is_caught(stage: _Stage) -> None:
    assert stage.tensors.conv_checkpoint is not None
    stage.tensors.conv_checkpoint[:, stage.slot] = stage.tensors.conv[:, stage.slot]
    assert stage.wrong() == {"conv_checkpoint"}


@pytest.mark.parametrize("component", ["ring_d", "ring_k"])
@pytest.mark.parametrize("index", range(5))
def test_a_ring_record_overwritten_by_another_is_caught(stage: _Stage, component: str, index: int) -> None:
    ring = getattr(stage.tensors, component)[:, stage.slot]  # [layers, heads, L, ...]
    ring[:, :, index] = ring[:, :, (index + 1) % 5]
    assert stage.wrong() == {component}


def test_a_ring_record_past_the_cursor_is_nobodys_business(stage: _Stage) -> None:
    assert stage.tensors.ring_d is not None
    stage.tensors.ring_d[:, stage.slot, :, 5] = 3.0
    assert stage.wrong() == frozenset()
    stage.tensors.ring_d[:, stage.slot, :, 4] = 3.0
    assert stage.wrong() == {"ring_d"}


def test_another_requests_checkpoint_is_caught(stage: _Stage) -> None:
    stage.play(Admit("b", tuple(range(90, 100))))
    stage.play(Prefill("b", 10))
    other = stage.engine.requests["b"].held_slot
    stage.tensors.temporal[:, stage.slot] = stage.tensors.temporal[:, other]
    assert stage.wrong() == STATE


def test_a_number_that_is_none_is_caught(stage: _Stage) -> None:
    stage.tensors.temporal[0, stage.slot, 0, 0, 0] = float("nan")
    assert stage.wrong() == STATE


def test_the_error_counts_columns_and_the_detail_says_of_how_many(stage: _Stage) -> None:
    assert all(m.detail == "" for m in stage.testimony.measure(stage.slot))
    stage.tensors.temporal[0, stage.slot, 0, 0, [2, 7]] += 1
    found = stage.testimony.measure(stage.slot)[0]
    assert (found.component, found.position, found.error, found.tolerance) == ("temporal", 10, 2.0, 0.0)
    assert found.detail == "2 of 64 columns differ from the ledger's records"
    assert found.subject == f"slot {stage.slot}"


def test_a_spoiled_stage_leaves_the_one_it_was_copied_from_alone(state_dtype: str) -> None:
    mine, other = deepcopy(_played(state_dtype)), deepcopy(_played(state_dtype))
    mine.tensors.temporal.add_(1)
    mine.pool.fold([mine.slot])
    assert mine.wrong() >= STATE
    assert other.wrong() == _played(state_dtype).wrong() == frozenset()
    assert other.pool.pending(other.slot) == other.engine.store.pool.pending(other.slot) == 5


# -- what temporal spells ------------------------------------------------------------------------------


def test_temporal_spells_each_position_its_token_and_that_it_was_absorbed_once(stage: _Stage) -> None:
    assert stage.testimony.spelled(stage.slot) == {p: (token, 1) for p, token in enumerate(PROMPT)}
    stage.fold(count=5)
    tokens = stage.engine.requests["a"].tokens[:15]
    assert stage.testimony.spelled(stage.slot) == {p: (token, 1) for p, token in enumerate(tokens)}


def test_swapped_layers_spell_no_token(stage: _Stage) -> None:
    _swap(stage.tensors.temporal[:, stage.slot], 0, 0, 1)
    spelled = stage.testimony.spelled(stage.slot)
    assert len(spelled) == len(PROMPT)
    assert all(said != (PROMPT[p], 1) for p, said in spelled.items())


def test_a_record_folded_twice_is_spelled_as_more_than_once(stage: _Stage) -> None:
    stage.fold(count=5, again=1)
    spelled = stage.testimony.spelled(stage.slot)
    assert spelled[9] == (PROMPT[9], 1)
    assert spelled[10] != (stage.engine.requests["a"].tokens[10], 1)
