"""What competes: one decode step of a layer, and what a step of all layers needs beside it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..dispatch import Kernels
from ..ring import REFERENCE, RingFormat
from ..tiles import DecodeTile, FoldTile
from .case import DTYPES, Case, Inputs


class Contender(ABC):
    """A way to run the steps of `case` over `states`, which it changes."""

    name: str
    folds_apart = False  # whether `fold` is a launch of its own; else a full ring flushes inside the step

    def __init__(self, case: Case, states: Tensor) -> None:
        self.case, self.states = case, states

    @abstractmethod
    def step(self, layer: int, x: Inputs, slots: Tensor, position: Tensor) -> Tensor:
        """Run one token per row; `position [rows]` is what each row's ring holds. Returns `[rows, HV, V]`."""

    def fold(self, slots: Tensor, counts: Tensor) -> None:  # noqa: B027  # most have nothing to do
        """Fold the rings of `slots`, all layers; nothing where a step leaves nothing pending."""

    def fill(self, generator: torch.Generator) -> None:  # noqa: B027
        """Fill the ring, where there is one, with plausible records, so that any position can be timed."""


class Packed(Contender):
    """Our packed decode: reads and writes the state every step; the tiles of the reference configuration."""

    name = "packed (ours)"

    def __init__(self, case: Case, states: Tensor) -> None:
        super().__init__(case, states)
        self._kernels = Kernels.load("triton", states.device)

    def step(self, layer: int, x: Inputs, slots: Tensor, position: Tensor) -> Tensor:  # noqa: ARG002
        """Advance the state."""
        return self._kernels.packed_decode(*x, self.states[layer], slots)


class Replay(Contender):
    """Replay with a ring of `d_dtype` and `k_dtype` in the given format, tuned or reference kernels."""

    folds_apart = True

    def __init__(
        self,
        case: Case,
        states: Tensor,
        ring: RingFormat | None = None,
        *,
        tuned: bool = True,
        d_dtype: torch.dtype = torch.float32,
        k_dtype: torch.dtype | None = None,
        decode_tile: DecodeTile | None = None,
        fold_tile: FoldTile | None = None,
    ) -> None:
        super().__init__(case, states)
        self.ring = ring or RingFormat()
        self.name = f"replay ({'tuned' if tuned else 'reference'})"
        self._kernels = Kernels.load("triton", states.device, self.ring, tuned=tuned)
        self._tile: dict[str, Any] = {}
        self._fold_tile: dict[str, Any] = {}
        self.use(decode_tile, fold_tile)
        lead, device = states.shape[:2], states.device
        width = (case.K,) if case.vector else ()
        self.d = torch.zeros(*lead, case.HV, case.ring, case.V, dtype=d_dtype, device=device)
        keys = k_dtype or DTYPES[case.io]
        self.k = torch.zeros(*lead, case.H, case.ring, case.K, dtype=keys, device=device)
        self.g = torch.zeros(*lead, case.HV, case.ring, *width, device=device)

    def use(self, decode_tile: DecodeTile | None = None, fold_tile: FoldTile | None = None) -> None:
        """Take these tiles; `None` means those of the shipped table."""
        self._tile = {} if decode_tile is None else {"tile": decode_tile}
        self._fold_tile = {} if fold_tile is None else {"tile": fold_tile}

    def fill(self, generator: torch.Generator) -> None:
        """Random keys and vectors; gates of decays near one."""
        for layer in range(self.states.shape[0]):
            self.d[layer].normal_(generator=generator)
            self.k[layer].normal_(generator=generator)
            gates = self.g[layer].uniform_(-0.1, -0.001, generator=generator)
            if self.ring.gates == "cumulative":
                self.g[layer] = gates.cumsum(dim=2)

    def step(self, layer: int, x: Inputs, slots: Tensor, position: Tensor) -> Tensor:
        """Append a record."""
        rings = (self.d[layer], self.k[layer], self.g[layer])
        return self._kernels.replay_decode(*x, self.states[layer], *rings, position, slots, **self._tile)

    def fold(self, slots: Tensor, counts: Tensor) -> None:
        """One launch for all layers."""
        self._kernels.fold(self.states, self.d, self.k, self.g, slots, counts, **self._fold_tile)


def ours(case: Case) -> tuple[Callable[[Case, Tensor], Contender], ...]:  # noqa: ARG001
    """Our contenders of a table: packed, tuned replay, reference replay."""
    return Packed, Replay, partial(Replay, ring=REFERENCE, tuned=False, k_dtype=torch.float32)
