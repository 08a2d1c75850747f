"""Relative error of outputs and folded states against the recurrence in float64."""

from collections.abc import Callable
from dataclasses import replace
from math import isnan
from typing import NamedTuple

import torch
from torch import Tensor

from .case import Case, Inputs, draw_inputs, draw_slots, draw_states
from .contenders import Contender
from .peers import FlashLinearAttention

ROWS = 4


class Errors(NamedTuple):
    """Frobenius errors relative to float64: of the worst output, and of the states after the fold."""

    output: float
    state: float


class Recurrence:
    """The recurrence as the papers write it, one token after another, in float64."""

    def __init__(self, states: Tensor) -> None:
        self.state = states.double()  # [rows, HV, V, K]

    def step(self, x: Inputs, gate_is_vector: bool) -> Tensor:
        """Advance by one token per row; returns the outputs `[rows, HV, V]`."""
        q, k, v, a, b, A_log, dt_bias = (t.double() for t in x)
        group = v.shape[1] // k.shape[1]
        q = (q / (q.square().sum(-1, keepdim=True) + 1e-6).sqrt() * q.shape[-1] ** -0.5).repeat_interleave(
            group, 1
        )
        k = (k / (k.square().sum(-1, keepdim=True) + 1e-6).sqrt()).repeat_interleave(group, 1)
        rate = A_log.exp()[:, None] if gate_is_vector else A_log.exp()
        x_gate = a + dt_bias
        g = -rate * torch.logaddexp(x_gate, torch.zeros_like(x_gate))
        decay = g.exp() if gate_is_vector else g.exp()[..., None]
        self.state = self.state * decay[:, :, None]
        d = b.sigmoid()[..., None] * (v - torch.einsum("nhvk,nhk->nhv", self.state, k))
        self.state = self.state + torch.einsum("nhv,nhk->nhvk", d, k)
        return torch.einsum("nhvk,nhk->nhv", self.state, q)


def relative(found: Tensor, expected: Tensor) -> float:
    """Frobenius error of `found` relative to `expected`; NaN where anything is."""
    return float((found.double() - expected).norm() / expected.norm())


def measure_errors(
    case: Case, make: Callable[[Case, Tensor], Contender], device: torch.device, seed: int = 5
) -> Errors:
    """Run L tokens of a few rows in fp32 from a random state, then fold."""
    case = replace(case, rows=min(ROWS, case.rows), io="fp32")
    generator = torch.Generator(device).manual_seed(seed)
    states = draw_states(case, 1, generator)
    slots = draw_slots(case, generator)
    contender = make(case, states)
    truth = Recurrence(states[0][slots.long()])
    errors = []
    for position in range(case.ring):
        x = draw_inputs(case, generator)
        out = contender.step(0, x, slots, torch.full_like(slots, position))
        errors.append(relative(out, truth.step(x, case.vector)))
    contender.fold(slots, torch.full_like(slots, case.ring))
    if isinstance(contender, FlashLinearAttention):
        contender.read_back(slots)
    worst = max(errors, key=lambda error: (isnan(error), error))
    return Errors(worst, relative(states[0][slots.long()], truth.state))
