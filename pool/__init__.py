"""Recurrent-state slots: tensors, allocator, cursors, ledger and byte model. Knows slots, not keys."""

from replaylife.kernels.ring import Gates, Keys
from replaylife.pool.advice import SlowReplayWarning
from replaylife.pool.allocator import KvBudget, SlotAllocator
from replaylife.pool.checkpoints import CheckpointPool, Moved, StoredCheckpoint
from replaylife.pool.ledger import EMPTY, Fold, Record, RecordRun
from replaylife.pool.mamba import Copied, Folded, MambaPool
from replaylife.pool.runs import Runs
from replaylife.pool.shape import BYTES, DType, Gate, PoolShape

__all__ = [
    "BYTES",
    "EMPTY",
    "CheckpointPool",
    "Copied",
    "DType",
    "Fold",
    "Folded",
    "Gate",
    "Gates",
    "Keys",
    "KvBudget",
    "MambaPool",
    "Moved",
    "PoolShape",
    "Record",
    "RecordRun",
    "Runs",
    "SlotAllocator",
    "SlowReplayWarning",
    "StoredCheckpoint",
]
