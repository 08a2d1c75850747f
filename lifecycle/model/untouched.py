"""Whether a step left every slot alone that belongs to none of its rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import torch

from replaylife.lifecycle.snapshot import Measurement
from replaylife.pool.tensors import PoolTensors


class Bystanders:
    """Keeps what all slots hold before a step, and says afterwards which others changed, bit for bit."""

    def __init__(self, tensors: PoolTensors) -> None:
        self._tensors = tensors
        self._before = {name: tensor.clone() for name, tensor in tensors.by_name().items()}

    def changed(self, rows: Collection[int]) -> Iterator[Measurement]:
        """Yield one measurement per slot outside ``rows``; ``error`` counts its changed numbers."""
        counts: dict[int, dict[str, int]] = {}
        for name, tensor in self._tensors.by_name().items():
            differs = (tensor != self._before[name]) & ~(tensor.isnan() & self._before[name].isnan())
            per_slot = differs.flatten(start_dim=2).sum(dim=(0, 2))  # [slots]
            for slot in torch.nonzero(per_slot).flatten().tolist():
                counts.setdefault(slot, {})[name] = int(per_slot[slot])
        for slot in range(self._tensors.temporal.shape[1]):
            if slot not in rows:
                parts = counts.get(slot, {})
                detail = ", ".join(f"{count} numbers of {name} changed" for name, count in parts.items())
                total = float(sum(parts.values()))
                yield Measurement("untouched", f"slot {slot}", "all", 0, total, 0.0, detail)
