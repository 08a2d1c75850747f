"""Measure a table of tiles on the present card: compile in parallel, time one by one, keep the fastest."""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor

from ..tiles import DecodeTile, FoldTile, Gate, State, TileTable, key_of, tile_of
from .case import Case, draw_inputs, draw_slots, draw_states
from .clock import median_us
from .compare import machine
from .contenders import Packed, Replay

TUNED_RINGS = (4, 16, 64)
TIMED_RINGS = (1, 2, 4, 8, 16, 32, 64)
BATCHES = (1, 16, 64, 256, 512)
FOLD_BATCH = 256
WORKERS = 16

_WIDE = (  # (BK, BV, warps, stages) of programs that walk all of V
    (64, 32, 1, 1), (64, 32, 1, 2), (128, 32, 1, 1), (128, 16, 1, 1), (128, 16, 1, 3),
    (64, 32, 2, 1), (64, 16, 1, 1), (64, 16, 1, 2), (128, 32, 2, 1), (32, 32, 1, 1),
)  # fmt: skip
_NARROW = ((64, 16, 1), (64, 32, 1), (32, 16, 1), (64, 8, 1), (128, 8, 1), (64, 32, 2), (32, 16, 2))
CAPS = (96, 112, 128)  # registers of a thread: more programs at once for a little more work each
DECODE_TILES = [DecodeTile(BK, BV, 128, warps, stages) for BK, BV, warps, stages in _WIDE]
DECODE_TILES += [tile._replace(registers=cap) for tile in DECODE_TILES[:5] for cap in CAPS]
DECODE_TILES += [DecodeTile(BK, BV, VS, warps, 1) for BK, BV, warps in _NARROW for VS in (BV, 2 * BV)]
_FOLDS = (  # (BK, BV, VS, warps, stages)
    (64, 64, 64, 4, 1), (64, 64, 128, 4, 2), (64, 32, 32, 1, 1), (64, 64, 64, 2, 1),
    (128, 32, 128, 2, 2), (128, 16, 128, 2, 3), (128, 64, 128, 4, 2), (64, 32, 128, 2, 2),
    (128, 32, 32, 1, 1), (128, 32, 128, 4, 2), (64, 16, 16, 1, 1), (32, 32, 32, 1, 1),
)  # fmt: skip
FOLD_TILES = [FoldTile(*sizes) for sizes in _FOLDS]


class Job(NamedTuple):
    """One tile of one operation to be compiled."""

    case: Case
    tile: DecodeTile | FoldTile


def tune(device: torch.device, progress: Callable[[str], None]) -> dict[str, Any]:
    """Return a table like `kernels/tiles.json`: tiles by gate, state, ring, batch, and the times reached."""
    kinds = list(product(get_args(Gate), get_args(State)))
    compile_all(jobs(kinds), progress)
    decode, fold, times = [], [], []
    for gate, state in kinds:
        for ring in TUNED_RINGS:
            for rows in BATCHES:
                case = Case.yardstick(gate, state, rows, ring)
                progress(f"decode {gate} {state} L {ring} batch {rows}")
                decode.append({**_key(case), "rows": rows, **best_decode(case, device)._asdict()})
            case = Case.yardstick(gate, state, FOLD_BATCH, ring)
            fold.append({**_key(case), **best_fold(case, device)._asdict()})
    compile_all(chosen(decode, fold), progress)
    for gate, state in kinds:
        for ring, rows in product(TIMED_RINGS, BATCHES):
            case = Case.yardstick(gate, state, rows, ring)
            progress(f"times {gate} {state} L {ring} batch {rows}")
            times.append({**_key(case), "rows": rows, **step_times(case, decode, fold, device)})
    yardstick = Case.yardstick("gdn", "fp32", 1)
    shape = {"K": yardstick.K, "V": yardstick.V, "HV": yardstick.HV}
    return {"measured_on": machine(device), "shape": shape, "decode": decode, "fold": fold, "times": times}


def jobs(kinds: Iterable[tuple[Gate, State]]) -> Iterator[Job]:
    """Everything that `tune` will launch for these kinds, a batch of one each."""
    for (gate, state), ring in product(kinds, TUNED_RINGS):
        case = Case.yardstick(gate, state, 1, ring)
        yield from (Job(case, tile) for tile in DECODE_TILES)
        yield from (Job(case, tile) for tile in FOLD_TILES)


def chosen(decode: list[dict[str, Any]], fold: list[dict[str, Any]]) -> Iterator[Job]:
    """The chosen tiles at every ring that is timed, once each."""
    tiles: dict[tuple[Gate, State, DecodeTile | FoldTile], None] = {}
    for row in decode:
        tiles[row["gate"], row["state"], tile_of(DecodeTile, row)] = None
    for row in fold:
        tiles[row["gate"], row["state"], tile_of(FoldTile, row)] = None
    for (gate, state, tile), ring in product(tiles, TIMED_RINGS):
        if ring not in TUNED_RINGS:
            yield Job(Case.yardstick(gate, state, 1, ring), tile)


def compile_all(todo: Iterable[Job], progress: Callable[[str], None]) -> None:
    """Fill Triton's cache from several processes; the kernels do not depend on the batch."""
    todo = list(todo)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
        for done, _ in enumerate(pool.map(compile_one, todo, chunksize=4), start=1):
            if done % 50 == 0 or done == len(todo):
                progress(f"compiled {done} of {len(todo)}")


def compile_one(job: Job) -> None:
    """Launch the tile once, on one slot."""
    device = torch.device("cuda", torch.cuda.current_device())
    contender, launch = _prepared(job.case, device, job.tile)
    launch(contender)
    torch.cuda.synchronize()


Launch = Callable[[Replay], object]


def _prepared(case: Case, device: torch.device, tile: DecodeTile | FoldTile) -> tuple[Replay, Launch]:
    generator = torch.Generator(device).manual_seed(1)
    states, slots, x = (
        draw_states(case, 1, generator),
        draw_slots(case, generator),
        draw_inputs(case, generator),
    )
    if isinstance(tile, FoldTile):
        counts = torch.full_like(slots, case.ring)
        return Replay(case, states, fold_tile=tile), lambda contender: contender.fold(slots, counts)
    position = torch.zeros_like(slots)
    return Replay(case, states, decode_tile=tile), lambda contender: contender.step(0, x, slots, position)


class Bench:
    """Data of one case, shared by all tiles that are timed on it."""

    def __init__(
        self, case: Case, device: torch.device, make: Callable[[Case, Tensor], Replay] = Replay
    ) -> None:
        self.case, self.device = case, device
        generator = torch.Generator(device).manual_seed(1)
        self.states = draw_states(case, case.layers(), generator)
        self.x, self.slots = draw_inputs(case, generator), draw_slots(case, generator)
        self.positions = torch.arange(case.rows, device=device, dtype=torch.int32) % case.ring
        self.replay = make(case, self.states)
        self.replay.fill(generator)

    def decode_us(self, tile: DecodeTile) -> float:
        """Microseconds of one layer's step without its fold."""
        self.replay.use(decode_tile=tile)
        return self._per_layer(lambda layer: self.replay.step(layer, self.x, self.slots, self.positions))

    def fold_us(self, tile: FoldTile) -> float:
        """Microseconds of a step's share of the fold, per layer."""
        self.replay.use(fold_tile=tile)
        due = self.slots[: max(1, self.case.rows // self.case.ring)].contiguous()
        counts = torch.full_like(due, self.case.ring)
        share = self.case.rows / self.case.ring / len(due)
        us = median_us([lambda: self.replay.fold(due, counts)] * 4, self.device) / 4
        return us * share / self.states.shape[0]

    def packed_us(self) -> float:
        """Microseconds of one layer's packed step."""
        packed = Packed(self.case, self.states)
        return self._per_layer(lambda layer: packed.step(layer, self.x, self.slots, self.positions))

    def _per_layer(self, step: Callable[[int], object]) -> float:
        layers = self.states.shape[0]
        return median_us([partial(step, layer) for layer in range(layers)], self.device) / layers


def best_decode(case: Case, device: torch.device) -> DecodeTile:
    """The fastest tile of a decode step."""
    bench = Bench(case, device)
    return min(DECODE_TILES, key=bench.decode_us)


def best_fold(case: Case, device: torch.device) -> FoldTile:
    """The fastest tile of a fold."""
    bench = Bench(case, device)
    return min(FOLD_TILES, key=bench.fold_us)


def step_times(
    case: Case, decode: list[dict[str, Any]], fold: list[dict[str, Any]], device: torch.device
) -> dict[str, float]:
    """What a step of `case` takes with the tiles chosen so far."""
    table = TileTable({"measured_on": {}, "shape": {}, "decode": decode, "fold": fold, "times": []})
    bench = Bench(case, device)
    key = key_of(case.vector, case.ring, bench.states.dtype)
    return {
        "packed_us": round(bench.packed_us(), 2),
        "decode_us": round(bench.decode_us(table.decode(key, case.rows)), 2),
        "fold_us": round(bench.fold_us(table.fold(key)), 2),
    }


def _key(case: Case) -> dict[str, Any]:
    return {"gate": case.gate, "state": case.state, "ring": case.ring}
