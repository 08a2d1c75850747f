"""Time of launches: CUDA graph replays between events on a GPU, the wall clock elsewhere."""

import statistics
import time
from collections.abc import Callable, Sequence

import torch

Launch = Callable[[], object]
REPEATS = 15


def median_us(launches: Sequence[Launch], device: torch.device, repeats: int = REPEATS) -> float:
    """Median microseconds of all `launches` in a row, after a warm-up that compiles what needs compiling."""
    for launch in launches:
        launch()
    if device.type != "cuda":
        return statistics.median(_wall_us(launches) for _ in range(3))
    torch.cuda.synchronize(device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for launch in launches:
            launch()
    graph.replay()
    return statistics.median(_event_us(graph) for _ in range(repeats))


def _wall_us(launches: Sequence[Launch]) -> float:
    start = time.perf_counter()
    for launch in launches:
        launch()
    return (time.perf_counter() - start) * 1e6


def _event_us(graph: torch.cuda.CUDAGraph) -> float:
    start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # untyped in torch
    end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e3


def copy_bandwidth(device: torch.device) -> float:
    """Bytes per second of an elementwise pass over memory, read and written, far beyond any cache."""
    count = (1 << 29) if device.type == "cuda" else (1 << 24)
    source = torch.randn(count, device=device)
    target = torch.empty_like(source)
    us = median_us([lambda: torch.add(source, 1.0, out=target)] * 2, device) / 2
    return 2 * source.nbytes / us * 1e6
