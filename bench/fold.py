"""What pending tokens cost to become state: records folded in parallel against raw inputs replayed in series.

On a GPU at the yardstick shape; without one, small shapes through Triton's interpreter, whose times count
operations and say nothing of bandwidth. Run: python bench/fold.py
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import torch

from replaylife.kernels import Kernels, RingFormat

if TYPE_CHECKING:
    from replaylife.kernels.bench.case import Case

WINDOWS = (1, 2, 4, 8, 16, 32, 64)
STEP = 4  # tokens verified at once when the rings are filled

FORMS = ("fold", "kv_replay")


@dataclass
class World:
    """Tokens of every layer and slot as raw inputs, and as records in rings; slot 0 takes no part."""

    kernels: Kernels
    temporal: torch.Tensor
    rings: dict[str, torch.Tensor]
    inputs: dict[str, torch.Tensor]
    params: dict[str, torch.Tensor]
    slots: torch.Tensor

    def launches(
        self, form: str, count: int, temporal: torch.Tensor, apart: bool
    ) -> list[Callable[[], None]]:
        """Launches that turn the first `count` tokens into state: one, or one a layer if `apart`."""
        layers = temporal.shape[0]
        parts = [slice(i, i + 1) for i in range(layers)] if apart else [slice(0, layers)]
        return [self._launch(form, count, temporal, part) for part in parts]

    def _launch(self, form: str, count: int, temporal: torch.Tensor, part: slice) -> Callable[[], None]:
        counts = torch.full_like(self.slots, count)
        if form == "fold":
            rings = {name: ring[part] for name, ring in self.rings.items()}
            return lambda: self.kernels.fold(temporal[part], **rings, slots=self.slots, counts=counts)
        kept = {name: x[part] for name, x in self.inputs.items() if name != "q"}
        params = {name: x[part] for name, x in self.params.items()}
        return lambda: self.kernels.kv_replay(
            temporal[part], **kept, **params, slots=self.slots, counts=counts
        )

    def state(self, form: str, count: int) -> torch.Tensor:
        """The state after `count` tokens, all layers."""
        temporal = self.temporal.clone()
        for launch in self.launches(form, count, temporal, apart=False):
            launch()
        return temporal[:, 1:]


def build(case: Case, layers: int, kernels: Kernels, device: torch.device) -> World:
    """Draw `case.ring` tokens a slot and layer, and verify them in windows so that the rings hold them."""
    from replaylife.kernels.bench.case import DTYPES, draw_inputs, draw_slots, draw_states

    generator = torch.Generator(device).manual_seed(0)
    size = (case.rows + 1, case.ring)
    drawn = [draw_inputs(replace(case, rows=size[0] * size[1]), generator) for _ in range(layers)]
    inputs = {
        name: torch.stack([getattr(one, name).view(*size, *getattr(one, name).shape[1:]) for one in drawn])
        for name in ("q", "k", "v", "a", "b")
    }
    params = {name: torch.stack([getattr(one, name) for one in drawn]) for name in ("A_log", "dt_bias")}
    lead, width = (layers, size[0]), (case.K,) if case.vector else ()
    rings = {
        "ring_d": torch.zeros(*lead, case.HV, case.ring, case.V, device=device),
        "ring_k": torch.zeros(*lead, case.H, case.ring, case.K, dtype=DTYPES[case.io], device=device),
        "ring_g": torch.zeros(*lead, case.HV, case.ring, *width, device=device),
    }
    temporal, slots = draw_states(case, layers, generator), draw_slots(case, generator)
    world = World(kernels, temporal, rings, inputs, params, slots)
    for layer, start in product(range(layers), range(0, case.ring, STEP)):
        fill(world, layer, start, min(STEP, case.ring - start))
    return world


def fill(world: World, layer: int, start: int, count: int) -> None:
    """Verify tokens `[start, start + count)` of a layer, all of which are kept."""
    slots = world.slots.long()
    window = {name: x[layer, slots, start : start + count].contiguous() for name, x in world.inputs.items()}
    own = {name: x[layer] for name, x in (world.params | world.rings).items()}
    at, all_of_it = torch.full_like(world.slots, start), torch.full_like(world.slots, count)
    world.kernels.verify(
        **window, **own, temporal=world.temporal[layer], write_pos=at, slots=world.slots, lengths=all_of_it
    )


def measure(case: Case, layers: int, kernels: Kernels, device: torch.device) -> Iterator[str]:
    """One line for each number of pending tokens."""
    from replaylife.kernels.bench.clock import median_us

    world = build(case, layers, kernels, device)
    scratch = world.temporal.clone()
    for count in (window for window in WINDOWS if window <= case.ring):
        us = {
            (form, apart): median_us(world.launches(form, count, scratch, apart), device) / layers
            for form, apart in product(FORMS, (False, True))
        }
        parallel, serial = (world.state(form, count).double() for form in FORMS)
        difference = (serial - parallel).norm().item() / parallel.norm().item()
        fold, replay = us["fold", False], us["kv_replay", False]
        yield (
            f"{case.gate:4} {case.state:5} {count:6}  {fold:9.1f} {us['fold', True]:9.1f} "
            f"{us['fold', True] / fold:6.2f}x  {replay:9.1f} {us['kv_replay', True]:9.1f} "
            f"{us['kv_replay', True] / replay:6.2f}x  {replay / fold:8.2f}x {difference:10.0e}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=64, help="slots that fold at once (64)")
    parser.add_argument("--layers", type=int, help="(24 on a GPU, 4 without)")
    parser.add_argument("--ring", type=int, default=16, help="L, the longest window (16; 64 at most)")
    parser.add_argument("--state", action="append", choices=["fp32", "bf16", "fp16"], help="(fp32)")
    asked = parser.parse_args()
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    layers = asked.layers or (24 if device.type == "cuda" else 4)
    kernels = Kernels.load("triton", device, RingFormat())

    from replaylife.kernels.bench.case import Case
    from replaylife.kernels.bench.compare import machine

    print(", ".join(f"{name} {value}" for name, value in machine(device).items()))
    cases = [
        Case.yardstick(gate, state, asked.batch, asked.ring)
        for gate, state in product(("gdn", "kda"), asked.state or ("fp32",))
    ]
    cases = [case if device.type == "cuda" else case.small() for case in cases]
    shape = cases[0]
    print(
        f"{kernels.mode}; {layers} layers, {shape.rows} slots, HV {shape.HV}, K {shape.K}, V {shape.V}, "
        f"L {shape.ring}; microseconds a layer"
    )
    print(f"{'':18} {'fold of records (parallel)':>29}  {'replay of inputs (serial)':>29}  {'serial':>8}")
    print(
        f"{'gate':4} {'state':5} {'tokens':>6}  {'one':>9} {'per layer':>9} {'ratio':>7}  {'one':>9} "
        f"{'per layer':>9} {'ratio':>7}  {'/parallel':>9} {'difference':>10}"
    )
    for case in cases:
        for line in measure(case, layers, kernels, device):
            print(line, flush=True)


if __name__ == "__main__":
    main()
