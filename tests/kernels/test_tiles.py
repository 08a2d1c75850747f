"""The shipped table of tiles: what is asked for is found, on any size of state, and it can be replaced."""

import json
from importlib import resources
from itertools import product

import pytest

from replaylife.kernels import tiles
from replaylife.kernels.tiles import DecodeTile, FoldTile, Key, TileTable, Times

GATES, STATES = ("gdn", "kda"), ("fp32", "bf16", "fp16")


@pytest.fixture
def shipped():
    return TileTable(json.loads(resources.files("replaylife.kernels").joinpath("tiles.json").read_text()))


def test_every_gate_state_ring_and_batch_has_tiles(shipped):
    found = 0
    for gate, state, ring, rows in product(GATES, STATES, range(1, 65), (1, 2, 17, 300, 4096)):
        tile = shipped.decode(Key(gate, state, ring), rows).within(128, 128)
        fold = shipped.fold(Key(gate, state, ring)).within(128, 128)
        assert tile.VS % tile.BV == 0
        assert 128 % tile.VS == 0
        assert tile.num_warps in (1, 2, 4, 8)
        assert fold.VS % fold.BV == 0
        assert min(fold.BV, fold.BK) >= 16
        found += 1
    assert found == 2 * 3 * 64 * 5


def test_a_batch_takes_the_tile_of_the_bucket_below_it_and_a_ring_that_of_the_next_longer_one():
    rows = [
        {"gate": "gdn", "state": "fp32", "ring": ring, "rows": batch, "BK": ring, "BV": batch, "VS": 128,
         "num_warps": 1, "num_stages": 1}
        for ring, batch in product((16, 64), (1, 64))
    ]  # fmt: skip
    table = TileTable({"measured_on": {}, "shape": {}, "decode": rows, "fold": [], "times": []})
    assert table.decode(Key("gdn", "fp32", 16), 63)[:2] == (16, 1)
    assert table.decode(Key("gdn", "fp32", 16), 64)[:2] == (16, 64)
    assert table.decode(Key("gdn", "fp32", 17), 500)[:2] == (64, 64)
    assert table.decode(Key("gdn", "fp32", 3), 1)[:2] == (16, 1)


@pytest.mark.parametrize(("K", "V"), [(16, 8), (12, 5), (128, 128), (96, 80), (256, 64)])
def test_tiles_shrink_to_the_state(K, V):
    tile = DecodeTile(128, 32, 128, 1, 1).within(K, V)
    assert tile.BK < 2 * K
    assert tile.BV < 2 * V
    assert tile.VS < 2 * V
    fold = FoldTile(128, 64, 128, 4, 2).within(K, V)
    assert 16 <= fold.BK < max(17, 2 * K)
    assert 16 <= fold.BV < max(17, 2 * V)


def test_times_are_those_of_the_longest_ring_that_is_no_longer(shipped):
    assert shipped.times(Key("gdn", "fp32", 20)) == shipped.times(Key("gdn", "fp32", 16))
    assert shipped.times(Key("gdn", "fp32", 16)) != shipped.times(Key("gdn", "fp32", 8))
    assert Times(8, 30.0, 10.0, 5.0).speedup == 2.0


def test_a_table_of_ones_own_replaces_the_shipped_one(tmp_path, monkeypatch):
    data = json.loads(resources.files("replaylife.kernels").joinpath("tiles.json").read_text())
    data["measured_on"] = {"card": "another"}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(data))
    monkeypatch.setenv("REPLAYLIFE_TILES", str(path))
    assert tiles.table.__wrapped__().measured_on == {"card": "another"}


@pytest.mark.parametrize("text", ["", "{}", '{"decode": 3}'], ids=["empty", "no tiles", "wrong"])
def test_a_file_that_is_no_table_is_refused_by_name(tmp_path, monkeypatch, text):
    path = tmp_path / "broken.json"
    path.write_text(text)
    monkeypatch.setenv("REPLAYLIFE_TILES", str(path))
    with pytest.raises(ValueError, match=r"REPLAYLIFE_TILES=.*broken.json: .*bench --tune"):
        tiles.table.__wrapped__()
