"""Faults in the memory plan: the pool is right, what was set aside for it is not."""

from __future__ import annotations

from dataclasses import replace

from replaylife.lifecycle.faults.fault import Fault
from replaylife.pool import MambaPool


class _BudgetForgetsRing(MambaPool):
    def budget_bytes(self) -> int:
        without = replace(self.shape, ring_length=None)
        return without.slots * without.slot_bytes()


BUDGET_FORGETS_RING = Fault(
    id="budget-forgets-ring",
    title="The memory plan counts the state and forgets the ring",
    source="https://github.com/sgl-project/sglang/issues/37066",
    mechanism=(
        "A request is charged for its state and its convolution window. With ReplaySSM its slot also has a "
        "ring, a second window and a cursor; the key-value pool is given those bytes as well, and the server "
        "runs out of memory under load."
    ),
    right_value="bytes per slot of every tensor of the pool, ring included",
    scenario="budget-forgets-ring",
    mixin=_BudgetForgetsRing,
    ledger=(),
    numeric=("budget-covers-pool",),
    damage="a plan that is too small: no state is wrong, the server runs out of memory",
)
