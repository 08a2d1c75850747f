"""The catalogue of seeded faults: each replaces one method, and each must be caught."""

from replaylife.lifecycle.faults import copies, cursor, donation, kernel, ownership, steps, tree
from replaylife.lifecycle.faults.fault import Fault

FAULTS: dict[str, Fault] = {
    fault.id: fault
    for fault in (
        donation.FINISH_DONATES_FULL_LENGTH,
        donation.DONATE_LIVE_CONV,
        donation.DONATION_KEEPS_CURSOR,
        copies.COPY_ACTIVE_SLOT,
        copies.COW_SOURCE_UNPINNED,
        copies.COW_RUNS_TWICE,
        cursor.CURSOR_ADVANCES_PER_LAYER,
        cursor.CURSOR_SURVIVES_REUSE,
        cursor.RETRACT_KEEPS_CURSOR,
        cursor.SKIP_FORCED_FLUSH_AT_TRACK,
        cursor.FLUSH_MASK_OFF_BY_ONE,
        kernel.RING_STORES_V,
        ownership.FREE_TWICE,
        ownership.SLOT_LEAKS_ON_ABORT,
        tree.UNLOCK_MISSING,
        tree.EVICT_IGNORES_LOCKS,
        tree.SPLIT_KEEPS_STATE_ON_PARENT,
        tree.MATCH_REFRESHES_ANCESTORS,
        tree.INSERT_STAMPS_SHORTER_KEY,
        steps.PUBLISH_AT_SCHEDULE,
        steps.GRID_FROM_CHUNK_START,
        steps.MIXED_STEP_DROPS_COPY,
        steps.STAMP_FROM_NEXT_STEP,
        steps.STAMP_KEPT_IN_PLACE,
        steps.PADDING_ON_SLOT_ZERO,
        steps.CURSORS_STAY_WITH_ROWS,
        steps.END_WITH_STEPS_IN_FLIGHT,
        steps.LIVE_STATE_AS_BLOCK,
        steps.COW_SURVIVES_REJECTION,
    )
}

__all__ = ["FAULTS", "Fault"]
