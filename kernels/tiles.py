"""Tile choices of the tuned kernels, and the times they were measured at: a table shipped with the package.

Nothing is tuned when kernels are loaded. `replaylife bench --tune FILE` measures a new table on the present
card, and `REPLAYLIFE_TILES=FILE` uses it.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    import torch

Gate = Literal["gdn", "kda"]
State = Literal["fp32", "bf16", "fp16"]
MIN_DOT = 16  # the smallest side of a matrix product in Triton


class DecodeTile(NamedTuple):
    """A program walks `VS` rows of V in tiles of `BV`, K in tiles of `BK`; `registers` 0 is no cap."""

    BK: int
    BV: int
    VS: int
    num_warps: int
    num_stages: int
    registers: int = 0

    def within(self, K: int, V: int) -> "DecodeTile":
        """Shrink to a state of `[V, K]`."""
        BV, VS = min(self.BV, ceil_pow2(V)), min(self.VS, ceil_pow2(V))
        return self._replace(BK=min(self.BK, ceil_pow2(K)), BV=BV, VS=VS)


class FoldTile(NamedTuple):
    """As `DecodeTile`; `BK` and `BV` are sides of a matrix product, so at least 16."""

    BK: int
    BV: int
    VS: int
    num_warps: int
    num_stages: int

    def within(self, K: int, V: int) -> "FoldTile":
        """Shrink to a state of `[V, K]`."""
        BK = max(MIN_DOT, min(self.BK, ceil_pow2(K)))
        most = max(MIN_DOT, ceil_pow2(V))
        return self._replace(BK=BK, BV=min(self.BV, most), VS=min(self.VS, most))


Tile = TypeVar("Tile", DecodeTile, FoldTile)


class Times(NamedTuple):
    """Median microseconds of a layer and step: packed decode, replay decode, and 1/L of a fold."""

    rows: int
    packed_us: float
    decode_us: float
    fold_us: float

    @property
    def speedup(self) -> float:
        """How much faster a step is with replay than packed."""
        return self.packed_us / (self.decode_us + self.fold_us)


@dataclass(frozen=True, slots=True)
class Key:
    """What tiles depend on; `ring` is L."""

    gate: Gate
    state: State
    ring: int


STATES: dict[str, State] = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16"}
WHOLE = 1 << 16  # "the whole side", for a tile that `within` shrinks to the state
INTERPRETED_DECODE = DecodeTile(WHOLE, WHOLE, WHOLE, 1, 1)  # the interpreter pays per program and operation
INTERPRETED_FOLD = FoldTile(WHOLE, WHOLE, WHOLE, 1, 1)


class TileTable:
    """Tiles by gate, state dtype, ring length and batch."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.measured_on: dict[str, str] = data["measured_on"]
        self.shape: dict[str, int] = data["shape"]
        self._decode = {(*_key(row), row["rows"]): tile_of(DecodeTile, row) for row in data["decode"]}
        self._fold = {_key(row): tile_of(FoldTile, row) for row in data["fold"]}
        self._times: dict[tuple[str, str, int], list[Times]] = {}
        for row in data["times"]:
            times = Times(row["rows"], row["packed_us"], row["decode_us"], row["fold_us"])
            self._times.setdefault(_key(row), []).append(times)

    def decode(self, key: Key, rows: int) -> DecodeTile:
        """Tile for a batch of `rows`: of the nearest ring that is no shorter, and the bucket below `rows`."""
        ring = _at_least(key.ring, (r for g, s, r, _ in self._decode if (g, s) == (key.gate, key.state)))
        buckets = [b for g, s, r, b in self._decode if (g, s, r) == (key.gate, key.state, ring)]
        bucket = max((b for b in buckets if b <= rows), default=min(buckets))
        return self._decode[key.gate, key.state, ring, bucket]

    def fold(self, key: Key) -> FoldTile:
        """Tile of a fold, of the nearest ring that is no shorter."""
        ring = _at_least(key.ring, (r for g, s, r in self._fold if (g, s) == (key.gate, key.state)))
        return self._fold[key.gate, key.state, ring]

    def times(self, key: Key) -> list[Times]:
        """Measured times by batch, of the longest ring no longer than `key.ring`; empty if unknown."""
        rings = [r for g, s, r in self._times if (g, s) == (key.gate, key.state) and r <= key.ring]
        return self._times[key.gate, key.state, max(rings)] if rings else []

    def best_ring(self, gate: Gate, state: State, rows: int) -> int | None:
        """The ring length with the fastest step for a batch of `rows`; `None` where nothing is known."""
        speedups = {
            ring: found.speedup
            for (g, s, ring), times in self._times.items()
            for found in times
            if (g, s, found.rows) == (gate, state, rows)
        }
        return max(speedups, key=speedups.__getitem__, default=None)

    def exact_times(self, key: Key) -> list[Times]:
        """Measured times of exactly this ring length, by batch; empty where it was not measured."""
        return self._times.get((key.gate, key.state, key.ring), [])


def key_of(vector_gate: bool, ring: int, dtype: "torch.dtype") -> Key:
    """What the tiles of a launch depend on, batch apart."""
    return Key("kda" if vector_gate else "gdn", STATES[str(dtype)], ring)


def ceil_pow2(n: int) -> int:
    """The smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


def _key(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["gate"], row["state"], row["ring"]


def tile_of(kind: type[Tile], row: dict[str, Any]) -> Tile:
    """The tile in a row of the table."""
    return kind(**{name: row[name] for name in kind._fields if name in row or name != "registers"})


def _at_least(ring: int, rings: Iterable[int]) -> int:
    known = sorted(set(rings))
    return next((r for r in known if r >= ring), known[-1])


@cache
def table() -> TileTable:
    """The table in use; raises `ValueError` where `REPLAYLIFE_TILES` names a file that is no such table."""
    path = os.environ.get("REPLAYLIFE_TILES")
    if not path:
        package = __package__ or "replaylife.kernels"
        return TileTable(json.loads(resources.files(package).joinpath("tiles.json").read_text()))
    try:
        return TileTable(json.loads(Path(path).read_text()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"REPLAYLIFE_TILES={path}: {error!r}, need a file that replaylife bench --tune wrote"
        ) from error
