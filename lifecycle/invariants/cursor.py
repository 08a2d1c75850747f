"""Claims about the ring's cursor."""

from __future__ import annotations

from collections.abc import Iterable

from replaylife.lifecycle.invariants.base import Invariant, slots_of
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import Transition, Violation


class CursorInRange(Invariant):
    """write_pos is 0..L-1 between steps, and host and device agree."""

    id = "cursor-in-range"
    claim = "between steps write_pos is 0..L-1, the same on host and device, and 0 in every tree-owned slot"

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Only with ReplaySSM on there is a cursor."""
        return capabilities.replayssm

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check the cursor of every slot."""
        for slot in slots_of(t):
            if slot.write_pos is None:
                continue
            upper = 0 if t.after.ring_length is None else t.after.ring_length - 1
            if slot.device_write_pos != slot.write_pos:
                yield self._explain(
                    t, slot.index, f"{slot.device_write_pos} on the device", f"{slot.write_pos}"
                )
            if not 0 <= slot.write_pos <= upper:
                yield self._explain(t, slot.index, f"{slot.write_pos}", f"0..{upper}")
            if slot.write_pos and any(owner.kind == "tree" for owner in slot.owners):
                yield self._explain(t, slot.index, f"{slot.write_pos} in a tree-owned slot", "0")

    def _explain(self, t: Transition, slot: int, found: str, expected: str) -> Violation:
        return self.broken(
            f"slot {slot}",
            f"write_pos {found}",
            expected,
            f"After step {t.step} ({t.action}) write_pos of slot {slot} is {found}.",
            "Then the kernels read records that are not there, or miss some that are.",
        )
