"""The catalogue of seeded faults: each replaces one method, and each must be caught."""

from replaylife.lifecycle.faults.copies import COPY_ACTIVE_SLOT
from replaylife.lifecycle.faults.cursor import CURSOR_ADVANCES_PER_LAYER
from replaylife.lifecycle.faults.donation import (
    DONATE_LIVE_CONV,
    DONATION_KEEPS_CURSOR,
    FINISH_DONATES_FULL_LENGTH,
)
from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.faults.kernel import RING_STORES_V
from replaylife.lifecycle.faults.ownership import FREE_TWICE

FAULTS: dict[str, Fault] = {
    fault.id: fault
    for fault in (
        FINISH_DONATES_FULL_LENGTH,
        DONATE_LIVE_CONV,
        DONATION_KEEPS_CURSOR,
        COPY_ACTIVE_SLOT,
        CURSOR_ADVANCES_PER_LAYER,
        RING_STORES_V,
        FREE_TWICE,
    )
}

__all__ = ["FAULTS", "Fault"]
