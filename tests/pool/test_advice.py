"""A pool says when replay does not pay for it."""

import warnings

import pytest

from replaylife.kernels.tiles import Key, table
from replaylife.pool import MambaPool, PoolShape, SlowReplayWarning


def shape(**changes):
    sizes = {
        "layers": 1, "slots": 300, "heads": 16, "value_heads": 32, "key_dim": 128, "value_dim": 128,
        "conv_width": 4, "ring_length": 16,
    }  # fmt: skip
    return PoolShape(**(sizes | changes))


def test_a_ring_of_one_record_is_slower_than_packed_and_the_pool_says_so():
    slowest = min(table().times(Key("gdn", "fp32", 1)), key=lambda times: times.speedup)
    assert slowest.speedup < 1.0
    with pytest.warns(
        SlowReplayWarning, match=r"ring of 1 is slower .* the fastest ring there has \d+ records"
    ):
        MambaPool(shape(ring_length=1))


@pytest.mark.parametrize(
    "changes",
    [{}, {"ring_length": None}, {"ring_length": 1, "slots": 2}, {"ring_length": 1, "key_dim": 64}],
    ids=["pays", "off", "no batch that is slower", "a shape that was not measured"],
)
def test_a_pool_where_replay_pays_or_nothing_is_known_says_nothing(changes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MambaPool(shape(**changes))
