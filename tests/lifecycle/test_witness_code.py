"""How a token and its position are written into q, k and v, and read back."""

from __future__ import annotations

import pytest
import torch

from replaylife.lifecycle.config import ModelConfig
from replaylife.lifecycle.model.witness import SCALE, WitnessCode

CODE = WitnessCode(ModelConfig(witness=True))
PAIRS = [(layer, head) for layer in range(2) for head in range(4)]


def _values(code: WitnessCode, token: int, layer: int) -> torch.Tensor:
    """What the value heads of ``layer`` are fed for ``token``: ``[HV, V]``."""
    config = code.config
    mixed = code.mixed([token], [0], layer)[0]
    return mixed[2 * code.capacity :].view(config.value_heads, config.value_dim)


def test_every_token_is_read_back_in_every_layer_and_head() -> None:
    read = [
        (token, CODE.read(_values(CODE, token, layer)[head], layer, head))
        for token in range(256)
        for layer, head in PAIRS
    ]
    assert len(read) == 256 * 8
    assert all(token == found for token, found in read)


@pytest.mark.parametrize("share", [0.5, 0.75, 0.875], ids=["once", "twice", "three times"])
def test_a_token_is_read_back_however_often_it_was_absorbed(share: float) -> None:
    read = [CODE.read(share * _values(CODE, token, 1)[2], 1, 2) for token in range(256)]
    assert read == list(range(256))


def test_a_token_read_in_another_layer_or_head_is_another_token() -> None:
    read = {pair: CODE.read(_values(CODE, 77, 0)[1], *pair) for pair in PAIRS}
    assert read.pop((0, 1)) == 77
    assert len(read) == 7
    assert 77 not in read.values()


def test_no_two_layers_or_heads_share_a_salt() -> None:
    assert len({CODE.salt(layer, head) for layer, head in PAIRS}) == len(PAIRS) == 8


def test_a_column_that_absorbed_nothing_spells_no_token() -> None:
    values = _values(CODE, 5, 0)[0]
    assert CODE.read(values, 0, 0) == 5
    assert CODE.read(0 * values, 0, 0) is None


def test_two_tokens_in_one_column_spell_no_token() -> None:
    once, other = 0.5 * _values(CODE, 5, 0)[0], _values(CODE, 6, 0)[0]
    assert CODE.read(once, 0, 0) == 5
    assert CODE.read(once + 0.5 * (other - once), 0, 0) is None


def test_a_negated_column_spells_no_token() -> None:
    values = _values(CODE, 5, 0)[0]
    assert CODE.read(-values, 0, 0) is None


def test_keys_and_queries_are_one_hot_by_position() -> None:
    mixed = CODE.mixed([3] * 64, range(64), layer=1)
    assert torch.equal(mixed[:, :64], SCALE * torch.eye(64))
    assert torch.equal(mixed[:, 64:128], SCALE * torch.eye(64))


def test_every_number_is_exact_in_two_bytes() -> None:
    mixed = CODE.mixed(range(64), range(64), layer=0)
    for dtype in (torch.bfloat16, torch.float16):
        assert all(torch.equal((s * mixed).to(dtype).float(), s * mixed) for s in (1.0, 0.5, 0.75))
    assert set(mixed.unique().tolist()) == {0.0, SCALE}


def test_the_same_token_at_another_position_differs_in_the_keys_only() -> None:
    first, second = CODE.mixed([9, 9], [4, 5], layer=0)
    assert not torch.equal(first[:128], second[:128])
    assert torch.equal(first[128:], second[128:])


@pytest.mark.parametrize(("vocab", "need"), [(256, 9), (255, 9), (128, 8), (8, 4)])
def test_values_too_short_for_the_bits_are_refused(vocab: int, need: int) -> None:
    message = rf"^model.value_dim: {need - 1}, need at least {need} in a witness run"
    with pytest.raises(ValueError, match=message):
        WitnessCode(ModelConfig(vocab=vocab, value_dim=need - 1))
    assert WitnessCode(ModelConfig(vocab=vocab, value_dim=need)).bits == need - 1


@pytest.mark.parametrize(("vocab", "layers"), [(2, 1), (4, 2), (8, 3)])
def test_too_few_tokens_for_a_salt_per_head_and_layer_are_refused(vocab: int, layers: int) -> None:
    with pytest.raises(ValueError, match=rf"^model.vocab: {vocab}, need more than"):
        WitnessCode(ModelConfig(vocab=vocab, layers=layers))
    code = WitnessCode(ModelConfig(vocab=8 * vocab, layers=layers))
    salts = {code.salt(layer, head) for layer in range(layers) for head in range(4)}
    assert len(salts) == 4 * layers


@pytest.mark.parametrize("positions", [[64], [3, 64], [200, 3]])
def test_a_position_without_a_column_is_refused(positions: list[int]) -> None:
    message = rf"^witness: position {max(positions)}, need less than heads \* key_dim = 64"
    with pytest.raises(ValueError, match=message):
        CODE.mixed([1] * len(positions), positions, layer=0)
    assert CODE.mixed([1], [63], layer=0)[0, 63] == SCALE
