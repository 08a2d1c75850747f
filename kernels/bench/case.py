"""What is measured: a shape, a batch, and random inputs for it."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from ..tiles import Gate, State

DTYPES: dict[State, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
MAX_STATE_BYTES = 9 << 30  # of all layers of one contender


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table: `rows` requests, each with a slot of its own in random order."""

    gate: Gate
    state: State
    rows: int
    ring: int = 16
    H: int = 16
    HV: int = 32
    K: int = 128
    V: int = 128
    io: State = "bf16"

    @classmethod
    def yardstick(cls, gate: Gate, state: State, rows: int, ring: int = 16) -> "Case":
        """The shapes of public hybrid models: GDN with two value heads a key head, KDA with one."""
        return cls(gate, state, rows, ring, H=16 if gate == "gdn" else 32)

    @property
    def vector(self) -> bool:
        """Whether a gate has one decay per key channel."""
        return self.gate == "kda"

    def small(self) -> "Case":
        """The same case in a size that Triton's interpreter can run."""
        return replace(self, rows=min(self.rows, 4), H=1, HV=2, K=32, V=32)

    def layers(self) -> int:
        """Layers to rotate over: enough that no state stays in a cache, few enough to fit in memory."""
        layer = self.rows * self.HV * self.K * self.V * DTYPES[self.state].itemsize
        return int(max(2, min(64, (1 << 32) // layer + 1, MAX_STATE_BYTES // layer)))


class Inputs(NamedTuple):
    """Inputs of one token per row."""

    q: Tensor
    k: Tensor
    v: Tensor
    a: Tensor
    b: Tensor
    A_log: Tensor
    dt_bias: Tensor


def draw_inputs(case: Case, generator: torch.Generator, io: State | None = None) -> Inputs:
    """Draw inputs whose decays lie mostly between 0.9 and 0.999; values are exact in bf16."""
    device, dtype = generator.device, DTYPES[io or case.io]

    def draw(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, device=device).bfloat16().to(dtype)

    width = (case.K,) if case.vector else ()
    return Inputs(
        q=draw(case.rows, case.H, case.K),
        k=draw(case.rows, case.H, case.K),
        v=draw(case.rows, case.HV, case.V),
        a=draw(case.rows, case.HV, *width),
        b=draw(case.rows, case.HV),
        A_log=torch.rand(case.HV, generator=generator, device=device) - 1.0,
        dt_bias=torch.rand(case.HV, *width, generator=generator, device=device) - 4.0,
    )


def draw_states(case: Case, layers: int, generator: torch.Generator) -> Tensor:
    """Draw states `[layers, slots, HV, V, K]`, one slot more than rows (slot 0 is reserved)."""
    size = (layers, case.rows + 1, case.HV, case.V, case.K)
    states = torch.empty(size, dtype=DTYPES[case.state], device=generator.device)
    for layer in states:
        layer.copy_(torch.randn(size[1:], generator=generator, device=generator.device))
    return states


def draw_slots(case: Case, generator: torch.Generator) -> Tensor:
    """Draw a slot for each row, in random order; int32 `[rows]`."""
    order = torch.randperm(case.rows, generator=generator, device=generator.device)
    return (order + 1).to(torch.int32)
