"""Run a comparison from plain words, and print it as one table."""

from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from ..dispatch import Kernels
from ..tiles import Gate, State

if TYPE_CHECKING:
    from .compare import Line, Report


def run(
    cases: list[tuple[Gate, State, int]],
    ring: int,
    sglang: Path | None,
    fla: Path | None,
    progress: Callable[[str], None],
) -> "Report":
    """Compare on the GPU, or, without one, in small shapes through Triton's interpreter."""
    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cuda":
        device = torch.device("cuda", torch.cuda.current_device())
    Kernels.load("triton", device)  # decides between compiler and interpreter before a peer imports Triton
    from .case import Case
    from .compare import compare
    from .peers import Peers

    chosen = [Case.yardstick(gate, state, rows, ring) for gate, state, rows in cases]
    if device.type == "cpu":
        chosen = list(dict.fromkeys(case.small() for case in chosen))
    return compare(chosen, Peers(sglang, fla), device, progress)


def lines(report: "Report") -> Iterator[str]:
    """The table: machine, then a block per case, then what could not be compared."""
    yield ", ".join(f"{name} {value}" for name, value in report.machine.items())
    bandwidth = report.bandwidth / 1e12
    yield f"copy bandwidth {bandwidth:.2f} TB/s; microseconds of one layer and step, fold included"
    yield "vs packed, vs sglang: how many times faster than the best packed kernel, and than sglang's replay"
    yield ""
    yield (
        f"{'gate':4} {'state':5} {'L':>3} {'batch':>5}  {'contender':28} {'staggered':>10} {'lock-step':>10} "
        f"{'vs packed':>9} {'vs sglang':>9} {'bandwidth':>9} {'output':>8} {'state':>8}"
    )
    for _, block in groupby(report.lines, key=lambda line: line.case):
        yield from _block(list(block))
        yield ""
    for peer, reason in report.missing.items():
        yield f"not compared: {peer} ({reason})"


def _block(block: list["Line"]) -> Iterator[str]:
    packed = min(line.staggered_us for line in block if line.name.startswith("packed"))
    sglang = next((line.staggered_us for line in block if line.name == "replay (sglang)"), None)
    for line in block:
        case, us = line.case, line.staggered_us
        versus = f"{sglang / us:8.2f}x" if sglang else f"{'-':>9}"
        yield (
            f"{case.gate:4} {case.state:5} {case.ring:3} {case.rows:5}  {line.name:28} {us:10.1f} "
            f"{line.lockstep_us:10.1f} {packed / us:8.2f}x {versus} {line.of_bandwidth:9.0%} "
            f"{line.errors.output:8.0e} {line.errors.state:8.0e}"
        )
