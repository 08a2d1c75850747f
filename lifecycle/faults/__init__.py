"""The catalogue of seeded faults: each replaces one method, and each must be caught."""

from replaylife.lifecycle.faults.copies import COPY_ACTIVE_SLOT
from replaylife.lifecycle.faults.donation import DONATE_LIVE_CONV, FINISH_DONATES_FULL_LENGTH
from replaylife.lifecycle.faults.fault import Fault

FAULTS: dict[str, Fault] = {
    fault.id: fault
    for fault in (
        FINISH_DONATES_FULL_LENGTH,
        DONATE_LIVE_CONV,
        COPY_ACTIVE_SLOT,
    )
}

__all__ = ["FAULTS", "Fault"]
