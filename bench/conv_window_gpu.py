"""Finding a with SGLang's own kernels: where temporal and the convolution window of a finished slot stand.

Run: python bench/conv_window_gpu.py                             on a GPU
     TRITON_INTERPRET=1 python bench/conv_window_gpu.py --device cpu     slowly, through Triton's interpreter

One layer decodes 10 prompt tokens, folded each, then 20 tokens with a ring of 16, through
``causal_conv1d_update`` and ``fused_recurrent_linear_replayssm_decode``. The finish path cuts the key to the
last fold, 26. The script says at which token temporal stands (against a run that folds every token) and which
inputs are in the window, then decodes 13 more tokens from that pair and from one that is at 26 throughout.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from replaylife.engines.sglang.absent import stand_ins

PROMPT, DECODED, RING, TURN_2, WIDTH = 10, 20, 16, 13, 4
KEY = PROMPT + RING
H, HV, K, V = 1, 2, 32, 32
DIM = 2 * H * K + HV * V


def kernels() -> tuple[Any, Any]:
    """Return SGLang's convolution step and its replay decode."""
    with stand_ins():
        conv = import_module("sglang.kernels.ops.mamba.causal_conv1d_triton")
        replay = import_module("sglang.kernels.ops.attention.linear.fused_recurrent_linear_replayssm")
    return conv.causal_conv1d_update, replay.fused_recurrent_linear_replayssm_decode


@dataclass
class Inputs:
    """Projections of every token, and the layer's weights."""

    x: Tensor  # [tokens, DIM]
    a: Tensor  # [tokens, HV]
    b: Tensor  # [tokens, HV]
    weight: Tensor  # [DIM, WIDTH]
    A_log: Tensor  # [HV]
    dt_bias: Tensor  # [HV]


def inputs(device: str) -> Inputs:
    generator = torch.Generator().manual_seed(0)
    tokens = PROMPT + DECODED + TURN_2

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(device)

    return Inputs(
        random(tokens, DIM),
        random(tokens, HV),
        random(tokens, HV),
        random(DIM, WIDTH) / 2,
        torch.full((HV,), -3.0, device=device),
        random(HV),
    )


class Layer:
    """One slot of one layer, stepped through SGLang's kernels."""

    def __init__(self, data: Inputs, device: str) -> None:
        self._data, self._device = data, device
        self._convolve, self._decode = kernels()
        zeros = lambda *shape: torch.zeros(*shape, device=device)  # noqa: E731
        self.conv, self.temporal = zeros(2, DIM, WIDTH - 1), zeros(2, HV, V, K)
        self._ring = (zeros(2, HV, RING, V), zeros(2, H, RING, K), zeros(2, HV, RING))
        self._slot = torch.ones(1, dtype=torch.int32, device=device)
        self.cursor = 0

    def step(self, token: int, *, flush: bool = False) -> Tensor:
        """Decode one token; the cursor moves as SGLang's bookkeeping moves it. Returns ``[HV, V]``."""
        data = self._data
        mixed = self._convolve(
            data.x[token : token + 1].clone(),
            self.conv,
            data.weight,
            None,
            "silu",
            conv_state_indices=self._slot,
        )
        out = torch.empty(1, 1, HV, V, device=self._device)
        at = torch.tensor([self.cursor], dtype=torch.int32, device=self._device)
        self._decode(
            mixed,
            data.a[token : token + 1],
            data.b[token : token + 1],
            data.A_log,
            data.dt_bias,
            K**-0.5,
            self.temporal,
            *self._ring,
            out,
            self._slot,
            at,
            force_flush=torch.tensor([int(flush)], dtype=torch.int32, device=self._device),
            use_qk_l2norm_in_kernel=True,
        )
        self.cursor = 0 if flush or self.cursor == RING - 1 else self.cursor + 1
        return out[0, 0].clone()

    def run(self, start: int, end: int, *, flush: bool = False) -> Tensor:
        return torch.stack([self.step(token, flush=flush) for token in range(start, end)])


def error(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cuda")
    device: str = parser.parse_args().device
    data = inputs(device)
    donated, clean = Layer(data, device), Layer(data, device)
    states = []
    for token in range(PROMPT + DECODED):
        donated.step(token, flush=token < PROMPT)
    clean.run(0, KEY, flush=True)
    reference = Layer(data, device)
    for token in range(PROMPT + DECODED):
        reference.step(token, flush=True)
        states.append(reference.temporal[1].clone())
    errors = [error(donated.temporal[1], state) for state in states]
    temporal = min(range(len(errors)), key=errors.__getitem__) + 1
    windows = [data.x[end - WIDTH + 1 : end].T for end in range(WIDTH, PROMPT + DECODED + 1)]
    conv = [end for end, window in enumerate(windows, WIDTH) if torch.equal(donated.conv[1], window)]
    print(f"device {device}: after {PROMPT} + {DECODED} tokens, ring {RING}: write_pos {donated.cursor}")
    print(f"key {PROMPT + DECODED - donated.cursor}")
    nearby = ", ".join(f"{errors[at - 1]:.1e} at {at}" for at in (temporal - 1, temporal + 1))
    print(f"temporal at {temporal} (relative error {errors[temporal - 1]:.1e}; {nearby}); conv at {conv}")
    donated.cursor = 0  # what finish does
    turn_2 = range(KEY, KEY + TURN_2)
    wrong = torch.stack([donated.step(token, flush=True) for token in turn_2])
    right = torch.stack([clean.step(token, flush=True) for token in turn_2])
    per_token = ", ".join(f"{error(one, other):.1e}" for one, other in zip(wrong, right, strict=True))
    print(f"turn 2, relative error of the layer's output by token: {per_token}")
    print(f"state after turn 2: {error(donated.temporal[1], clean.temporal[1]):.1e}")


if __name__ == "__main__":
    main()
