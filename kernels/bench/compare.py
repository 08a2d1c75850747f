"""One table of contenders and shapes."""

import platform
from collections.abc import Callable
from dataclasses import asdict, fields
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..traffic import Traffic
from .accuracy import Errors, measure_errors
from .case import DTYPES, Case, Inputs, draw_inputs, draw_slots, draw_states
from .clock import copy_bandwidth, median_us
from .contenders import Contender, ours
from .peers import Peers

Make = Callable[[Case, Tensor], Contender]


class Line(NamedTuple):
    """A contender on a case; microseconds of one layer and step, its share of the fold included.

    `staggered`: rows at all ring positions in one batch. `lockstep`: all rows at one position, the mean over
    all of them. `of_bandwidth`: its minimal bytes at the measured copy bandwidth over its staggered time.
    """

    case: Case
    name: str
    staggered_us: float
    lockstep_us: float
    of_bandwidth: float
    errors: Errors


class Report(NamedTuple):
    """Where it ran, its copy bandwidth in bytes per second, the lines, and missing peers with the reason."""

    machine: dict[str, str]
    bandwidth: float
    lines: list[Line]
    missing: dict[str, str]

    def record(self) -> dict[str, Any]:
        """Plain data for JSON."""
        lines = [
            {**asdict(line.case), **{k: v for k, v in line._asdict().items() if k not in ("case", "errors")},
             "output_error": line.errors.output, "state_error": line.errors.state}
            for line in self.lines
        ]  # fmt: skip
        return {
            "machine": self.machine,
            "copy_bytes_per_s": self.bandwidth,
            "missing": self.missing,
            "lines": lines,
        }


def read_back(record: dict[str, Any]) -> Report:
    """The report that `Report.record` wrote."""
    names = [field.name for field in fields(Case)]
    lines = [
        Line(
            Case(**{name: row[name] for name in names}),
            row["name"],
            row["staggered_us"],
            row["lockstep_us"],
            row["of_bandwidth"],
            Errors(row["output_error"], row["state_error"]),
        )
        for row in record["lines"]
    ]
    return Report(record["machine"], record["copy_bytes_per_s"], lines, record["missing"])


def machine(device: torch.device) -> dict[str, str]:
    """Card, driver and versions."""
    import triton

    words = {"torch": torch.__version__, "triton": triton.__version__, "python": platform.python_version()}
    if device.type != "cuda":
        return {"card": f"none ({platform.machine()} CPU, Triton's interpreter)", **words}
    return {"card": torch.cuda.get_device_name(device), "driver": _driver(), **words}


def _driver() -> str:
    import subprocess

    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout.split()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown"


def compare(cases: list[Case], peers: Peers, device: torch.device, progress: Callable[[str], None]) -> Report:
    """Measure every contender on every case."""
    bandwidth = copy_bandwidth(device)
    lines = []
    for case in cases:
        progress(f"{case.gate}, {case.state} state, L {case.ring}, batch {case.rows}")
        for make in (*ours(case), *peers.contenders(case)):
            lines.append(measure(case, make, bandwidth, device))
            if device.type == "cuda":
                torch.cuda.empty_cache()
    return Report(machine(device), bandwidth, lines, peers.missing)


def measure(case: Case, make: Make, bandwidth: float, device: torch.device) -> Line:
    """Measure one contender on one case."""
    generator = torch.Generator(device).manual_seed(1)
    layers = case.layers() if device.type == "cuda" else 1
    contender = make(case, draw_states(case, layers, generator))
    contender.fill(generator)
    run = Run(case, contender, draw_inputs(case, generator), draw_slots(case, generator), device)
    staggered = run.staggered() / layers
    lockstep = run.lockstep() / layers
    minimal = _minimal_bytes(case, contender) * case.rows
    return Line(
        case,
        contender.name,
        staggered,
        lockstep,
        minimal / bandwidth / (staggered * 1e-6),
        measure_errors(case, make, device),
    )


class Run:
    """Times the steps of one contender, all layers; microseconds."""

    def __init__(
        self, case: Case, contender: Contender, x: Inputs, slots: Tensor, device: torch.device
    ) -> None:
        self._case, self._contender, self._x, self._slots, self._device = case, contender, x, slots, device
        self._layers = range(contender.states.shape[0])

    def staggered(self) -> float:
        """Rows at all ring positions at once; a fold of one in L, or what flushes inside a step."""
        positions = torch.arange(self._case.rows, device=self._device, dtype=torch.int32) % self._case.ring
        launches = self._steps(positions)
        if not self._contender.folds_apart:
            return median_us(launches, self._device)
        due = self._slots[: max(1, self._case.rows // self._case.ring)].contiguous()
        folded = median_us([*launches, self._fold(due)], self._device)
        share = (
            self._case.rows / self._case.ring / len(due)
        )  # of a fold, where a small batch needs less than one
        return (
            folded
            if share == 1
            else median_us(launches, self._device) + share * median_us([self._fold(due)], self._device)
        )

    def lockstep(self) -> float:
        """All rows at one position, the mean over all positions, one fold of all rows among them."""
        times = []
        for position in range(self._case.ring):
            launches = self._steps(torch.full_like(self._slots, position))
            if position == self._case.ring - 1 and self._contender.folds_apart:
                launches.append(self._fold(self._slots))
            times.append(median_us(launches, self._device, repeats=5))
        return sum(times) / len(times)

    def _steps(self, positions: Tensor) -> list[Callable[[], object]]:
        return [
            partial(self._contender.step, layer, self._x, self._slots, positions) for layer in self._layers
        ]

    def _fold(self, slots: Tensor) -> Callable[[], object]:
        counts = torch.full_like(slots, self._case.ring)
        return lambda: self._contender.fold(slots, counts)


def _minimal_bytes(case: Case, contender: Contender) -> float:
    size = DTYPES[case.state].itemsize
    traffic = Traffic(case.gate, case.H, case.HV, case.K, case.V, case.ring, state=size)
    return traffic.fused if "replay" in contender.name else traffic.packed
