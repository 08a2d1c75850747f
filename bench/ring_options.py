"""What each way to store a record costs: bytes, time and error, at the yardstick shape. Needs a GPU.

Run: python bench/ring_options.py [--gate kda] [--state bf16]
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import product

import torch

from replaylife.kernels import Kernels, RingFormat

OPTIONS = [
    # d, key dtype, keys, gates
    ("fp32", "bf16", "raw", "step"),
    ("fp32", "bf16", "raw", "cumulative"),
    ("fp32", "bf16", "normalised", "step"),
    ("fp32", "fp32", "normalised", "step"),
    ("fp32", "fp32", "normalised", "cumulative"),
    ("bf16", "bf16", "raw", "step"),
    ("bf16", "bf16", "normalised", "step"),
    ("fp16", "bf16", "raw", "step"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--ring", type=int, default=16)
    parser.add_argument("--gate", choices=("gdn", "kda"), help="this gate alone")
    parser.add_argument("--state", choices=("fp32", "bf16"), help="this state dtype alone")
    asked = parser.parse_args()
    device = torch.device("cuda", 0)
    Kernels.load("triton", device)

    from replaylife.kernels.bench.accuracy import measure_errors
    from replaylife.kernels.bench.case import DTYPES, Case
    from replaylife.kernels.bench.compare import machine
    from replaylife.kernels.bench.contenders import Replay
    from replaylife.kernels.bench.tune import DECODE_TILES, FOLD_TILES, Bench
    from replaylife.kernels.traffic import Traffic

    print(", ".join(f"{name} {value}" for name, value in machine(device).items()))
    print(
        f"batch {asked.batch}, L {asked.ring}; microseconds of one layer and step with the best tile of each"
    )
    head = f"{'gate':4} {'state':5} {'d':5} {'key':5} {'keys':10} {'gates':10} {'bytes':>6} {'decode':>7}"
    print(f"{head} {'fold':>6} {'output':>8} {'state':>8}  tile")
    given = [asked.gate] if asked.gate else ["gdn", "kda"], [asked.state] if asked.state else ["fp32", "bf16"]
    for (gate, state), (d, key, keys, gates) in product(product(*given), OPTIONS):
        case = Case.yardstick(gate, state, asked.batch, asked.ring)
        make = partial(Replay, ring=RingFormat(keys, gates), d_dtype=DTYPES[d], k_dtype=DTYPES[key])
        errors = measure_errors(case, make, device)
        bench = Bench(case, device, make)
        times = {tile: bench.decode_us(tile) for tile in DECODE_TILES[:8]}
        tile = min(times, key=times.__getitem__)
        fold = min(bench.fold_us(tile) for tile in FOLD_TILES[:6])
        sizes = Traffic(case.gate, case.H, case.HV, case.K, case.V, case.ring, d=DTYPES[d].itemsize,
                        key=DTYPES[key].itemsize)  # fmt: skip
        print(f"{gate:4} {state:5} {d:5} {key:5} {keys:10} {gates:10} {sizes.record_bytes / 1024:5.1f}K "
              f"{times[tile]:7.1f} {fold:6.1f} {errors.output:8.0e} {errors.state:8.0e}  {tuple(tile)}",
              flush=True)  # fmt: skip
        del bench
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
