"""Padding rows carry slot -1: they must not reach the last slot by way of a negative index."""

from __future__ import annotations

import pytest

from replaylife.pool import MambaPool, PoolShape, Record


def pool(ring_length: int | None = 4) -> MambaPool:
    shape = PoolShape(
        layers=2,
        slots=4,
        heads=1,
        value_heads=1,
        key_dim=4,
        value_dim=4,
        conv_width=4,
        ring_length=ring_length,
    )
    return MambaPool(shape)


@pytest.mark.parametrize("ring_length", [4, None])
def test_a_padding_row_changes_no_slot(ring_length: int | None) -> None:
    padded = pool(ring_length)
    before = [slot.clone() for slot in padded.ledger.slots]
    padded.append([(-1, Record("pad", 0, 7))])
    padded.advance([-1])
    assert padded.fold([-1]) == ()
    assert padded.ledger.slots == before
    assert padded.write_pos in ([0, 0, 0, 0], None)
    assert not padded.touched


def test_a_real_row_beside_it_does() -> None:
    padded = pool()
    padded.append([(-1, Record("pad", 0, 7)), (3, Record("a", 0, 7))])
    padded.advance([-1, 3])
    assert padded.write_pos == [0, 0, 0, 1]
    assert [folded.slot for folded in padded.fold([-1, 3])] == [3]


def test_folding_without_a_ring_is_refused_as_with_tensors() -> None:
    with pytest.raises(ValueError, match="ReplaySSM is off"):
        pool(None).fold_into([1], [0], [2])
    pool().fold_into([1], [0], [2])


@pytest.mark.parametrize(
    ("field", "wrong"),
    [("gate", "gnd"), ("state_dtype", "fp8"), ("conv_dtype", "f"), ("ring_dtype", ""), ("slots", 1)],
)
def test_a_shape_names_the_size_or_dtype_it_cannot_use(field: str, wrong: object) -> None:
    sizes = {
        "layers": 2,
        "slots": 4,
        "heads": 1,
        "value_heads": 1,
        "key_dim": 4,
        "value_dim": 4,
        "conv_width": 4,
    }
    with pytest.raises(ValueError, match=rf"^{field}: {wrong!r}, need"):
        PoolShape(**{**sizes, "ring_length": 4, field: wrong})  # type: ignore[arg-type]
    PoolShape(**sizes, ring_length=4)
