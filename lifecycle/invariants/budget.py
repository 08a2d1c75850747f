"""A claim about memory: what was planned for the pool is what it takes."""

from __future__ import annotations

from collections.abc import Iterable

from replaylife.lifecycle.invariants.base import Invariant
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import Transition, Violation


class BudgetCoversPool(Invariant):
    """Bytes predicted for the pool against bytes allocated."""

    id = "budget-covers-pool"
    claim = "the bytes predicted for the pool's slots equal the bytes allocated, ring included"
    from_tensors = True

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Only where there are tensors to weigh."""
        return capabilities.numeric

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check the budget measurement, which an engine takes once."""
        for measured in t.after.measurements:
            if measured.kind == "budget" and measured.exceeded:
                yield self.broken(
                    measured.subject,
                    measured.detail,
                    "the same number",
                    f"Let the memory plan and the pool be about the same slots: {measured.detail}.",
                    f"They differ by {measured.error:.1%} of what is allocated, and whatever is planned to "
                    "fill the rest of the memory was given those bytes too.",
                    "Then the server runs out of memory when it fills up, or leaves some unused.",
                )
