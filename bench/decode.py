"""Decode steps side by side, in one process and one run: `replaylife bench` with its numbers kept.

Run: python bench/decode.py --sglang UNPACKED_WHEEL --fla UNPACKED_WHEEL --json bench/results/decode.json
     python bench/decode.py --show bench/results/h200_decode_fp32.json
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import product
from pathlib import Path

from replaylife.cli.bench import BATCHES
from replaylife.kernels.bench.compare import read_back
from replaylife.kernels.bench.report import lines, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sglang", type=Path, help="folder of an unpacked sglang wheel")
    parser.add_argument("--fla", type=Path, help="folder of an unpacked fla-core wheel")
    parser.add_argument("--batch", type=int, action="append", help=f"rows, may be repeated {BATCHES}")
    parser.add_argument("--state", action="append", choices=["fp32", "bf16", "fp16"], help="(fp32 bf16)")
    parser.add_argument("--ring", type=int, default=16, help="L (16)")
    parser.add_argument("--json", type=Path, help="write the numbers there, too")
    parser.add_argument("--show", type=Path, help="print the table of a file written with --json")
    asked = parser.parse_args()
    if asked.show:
        print("\n".join(lines(read_back(json.loads(asked.show.read_text())))))
        return
    cases = list(product(("gdn", "kda"), asked.state or ("fp32", "bf16"), asked.batch or BATCHES))
    report = run(cases, asked.ring, asked.sglang, asked.fla, lambda words: print(words, file=sys.stderr))
    print("\n".join(lines(report)))
    if asked.json:
        asked.json.write_text(json.dumps(report.record(), indent=1) + "\n")


if __name__ == "__main__":
    main()
