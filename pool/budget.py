"""How many slots a memory budget holds, and how far off a formula is that forgets the ring."""

from __future__ import annotations

from dataclasses import dataclass, replace

from replaylife.pool.shape import PoolShape


@dataclass(frozen=True, slots=True)
class Budget:
    """``num_bytes`` of one rank's memory, to be filled with slots of ``shape`` (its own ``slots`` apart).

    Slot 0 is reserved and costs as much as any other, so it counts among ``slots``.
    """

    shape: PoolShape
    num_bytes: int

    @property
    def slots(self) -> int:
        """Slots that fit, the reserved one included."""
        return self.num_bytes // self.shape.slot_bytes()

    @property
    def usable(self) -> int:
        """Slots that a request or the tree can have."""
        return max(0, self.slots - 1)

    @property
    def ringless_slot_bytes(self) -> int:
        """Bytes of a slot by a formula that knows state and convolution window only."""
        return replace(self.shape, ring_length=None).slot_bytes()

    @property
    def ringless_slots(self) -> int:
        """Slots that this formula would promise for the same bytes."""
        return self.num_bytes // self.ringless_slot_bytes

    @property
    def ringless_bytes(self) -> int:
        """Bytes that so many slots really take."""
        return self.ringless_slots * self.shape.slot_bytes()

    @property
    def overshoot(self) -> int:
        """Bytes by which the formula without the ring runs over the budget; 0 where it stays within."""
        return max(0, self.ringless_bytes - self.num_bytes)
