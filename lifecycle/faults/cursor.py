"""Faults in moving the ring's cursor."""

from __future__ import annotations

from collections.abc import Iterable

from replaylife.lifecycle.faults.fault import Fault
from replaylife.pool import MambaPool


class _AdvancePerLayer(MambaPool):
    def advance(self, slots: Iterable[int]) -> None:
        due = list(slots)
        for _ in range(self.shape.layers):
            super().advance(due)


CURSOR_ADVANCES_PER_LAYER = Fault(
    id="cursor-advances-per-layer",
    title="Each layer advances the shared cursor",
    source="https://github.com/sgl-project/sglang/issues/28511",
    mechanism=(
        "One cursor serves all layers of a slot. If every layer advances it, one token moves it by the "
        "number of layers, and reads and folds take ring entries that nobody wrote."
    ),
    right_value="+1 per token, whatever the number of layers",
    scenario="cursor-advances-per-layer",
    mixin=_AdvancePerLayer,
    ledger=("live-state-complete", "ring-owned"),
    numeric=(),
)
