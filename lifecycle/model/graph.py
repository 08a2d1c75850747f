"""Decode through static buffers, captured once in a CUDA graph where there is one."""

from __future__ import annotations

import torch

from replaylife.lifecycle.batch import PADDING_SLOT, Batch
from replaylife.lifecycle.model.network import Network
from replaylife.pool.tensors import PoolTensors


class GraphDecoder:
    """Buffers of a fixed number of rows, refreshed in place before each step.

    With compiled Triton kernels the network's decode is captured once over these buffers and replayed: one
    graph serves any mixture of ring positions, because cursors and slots are read from the buffers. Warm-up
    and capture run on padding rows (slot -1), which write nothing and advance no cursor. On a CPU, and with
    the torch twins (which read values back), the same buffers are used without a capture. ``captures`` and
    ``replays`` count what really happened.
    """

    def __init__(self, network: Network, tensors: PoolTensors, rows: int) -> None:
        self._network = network
        device = tensors.device
        self._tokens = torch.zeros(rows, dtype=torch.int64, device=device)
        self._slots = torch.full((rows,), PADDING_SLOT, dtype=torch.int32, device=device)
        replaying = tensors.write_pos is not None
        self._cursors = torch.zeros(rows, dtype=torch.int32, device=device) if replaying else None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._logits: torch.Tensor | None = None
        self.captures = self.replays = 0
        if tensors.kernels.mode == "triton-compiled":
            self._capture()

    def decode(self, batch: Batch) -> torch.Tensor:
        """Refresh the buffers from ``batch``, run, and return the logits of its real rows."""
        self._refresh(self._tokens, batch.tokens)
        self._refresh(self._slots, batch.slots)
        if self._cursors is not None:
            self._refresh(self._cursors, batch.cursors)
        if self._graph is None or self._logits is None:
            logits = self._run()
        else:
            self._graph.replay()
            self.replays += 1
            logits = self._logits
        return logits[: len(batch.rows)].clone()

    def _run(self) -> torch.Tensor:
        return self._network.decode(self._tokens, self._slots, self._cursors)

    def _refresh(self, buffer: torch.Tensor, values: tuple[int, ...]) -> None:
        buffer.copy_(torch.tensor(values, dtype=buffer.dtype))

    def _capture(self) -> None:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # untyped in torch
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):  # compiles every kernel before the capture
                self._run()
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._logits = self._run()
        self.captures += 1
