"""Who may hand out slots and key-value tokens."""

from __future__ import annotations

from collections import deque


class SlotAllocator:
    """The free list of recurrent-state slots.

    Slot 0 is reserved and never handed out (padding and dummy rows must have nothing to hit). Slots are
    handed out in the order in which they were freed, so that a run is reproducible. A slot freed twice is on
    the list twice: the snapshot shows it, and an invariant says so.
    """

    def __init__(self, num_slots: int) -> None:
        if num_slots < 2:
            raise ValueError(f"num_slots: {num_slots}, need at least 2 (slot 0 is reserved)")
        self.num_slots = num_slots
        self._free = deque(range(1, num_slots))

    @property
    def num_free(self) -> int:
        """Slots on the free list."""
        return len(self._free)

    @property
    def free_list(self) -> tuple[int, ...]:
        """The free list in the order in which slots will be handed out."""
        return tuple(self._free)

    def allocate(self) -> int | None:
        """Take a slot off the free list; ``None`` when there is none."""
        return self._free.popleft() if self._free else None

    def deallocate(self, slot: int) -> None:
        """Put ``slot`` at the end of the free list. The caller owns it and gives it up."""
        self._free.append(slot)

    def clone(self) -> SlotAllocator:
        """Return an independent copy."""
        twin = SlotAllocator.__new__(SlotAllocator)
        twin.num_slots = self.num_slots
        twin._free = self._free.copy()
        return twin


class KvBudget:
    """Key-value token slots of the full-attention layers, counted and without contents.

    A token belongs to the tree, to a request, or is free; this class knows only how many are taken. It takes
    its callers' word: one that gives back too much shows in the snapshot, where an invariant counts again.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"kv_tokens: {capacity}, need at least 1")
        self.capacity = capacity
        self.num_taken = 0

    @property
    def num_free(self) -> int:
        """Tokens that may still be taken."""
        return self.capacity - self.num_taken

    def take(self, count: int) -> None:
        """Take ``count`` tokens. Raises ``ValueError`` when fewer are free; nothing changes then."""
        if count > self.num_free:
            raise ValueError(f"kv tokens: {count} asked for, {self.num_free} of {self.capacity} free")
        self.num_taken += count

    def give_back(self, count: int) -> None:
        """Give ``count`` tokens back."""
        self.num_taken -= count

    def clone(self) -> KvBudget:
        """Return an independent copy."""
        twin = KvBudget(self.capacity)
        twin.num_taken = self.num_taken
        return twin
