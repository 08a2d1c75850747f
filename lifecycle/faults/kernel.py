"""Faults inside the kernels: the ledger says what was meant, the tensors say what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from replaylife.kernels.dispatch import Kernels
from replaylife.lifecycle.faults.fault import Fault

if TYPE_CHECKING:
    from torch import Tensor


class _RingStoresV(Kernels):
    def replay_decode(self, *arguments: Any, **options: Any) -> Tensor:
        o = super().replay_decode(*arguments, **options)
        v, ring_d, write_pos, slots = arguments[2], arguments[8], arguments[11], arguments[12]
        for row, (slot, index) in enumerate(zip(slots.tolist(), write_pos.tolist(), strict=True)):
            if slot >= 0:
                ring_d[slot, :, index] = v[row]
        return o


RING_STORES_V = Fault(
    id="ring-stores-v",
    title="The ring keeps v where it must keep d",
    source="https://github.com/vllm-project/vllm/pull/48792",
    mechanism=(
        "The record of a token is its corrected delta vector, which already contains the old state. With the "
        "raw value in its place the fold is a sum of outer products that corrects nothing."
    ),
    right_value="d = beta (v - S (alpha * k)) in ring_d",
    scenario="ring-stores-v",
    mixin=_RingStoresV,
    ledger=(),
    numeric=("state-matches-oracle",),
)
