"""Places for whole checkpoints outside the pool: host memory, or the pool of another engine."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from replaylife.pool.ledger import EMPTY, Fold, Record
from replaylife.pool.mamba import MambaPool

if TYPE_CHECKING:
    from replaylife.pool.tensors import CheckpointTensors


class Moved(NamedTuple):
    """A checkpoint went from ``src`` to ``dst``, which then covers ``[0, length)``.

    ``pending`` is the cursor of a source in the pool at that moment: those records did not go along.
    """

    src: int
    dst: int
    pending: int
    length: int


@dataclass(slots=True)
class StoredCheckpoint:
    """What one place holds: the pair (temporal, conv_checkpoint), no ring and no cursor.

    ``written`` is the step that wrote it; the logs are kept for the witness.
    """

    temporal: Fold = EMPTY
    conv: Fold = EMPTY
    written: int = 0
    temporal_log: tuple[Record, ...] = ()
    conv_log: tuple[Record, ...] = ()


class CheckpointPool:
    """Numbered places, from 0, each for one checkpoint of a :class:`MambaPool`. Knows slots, not keys.

    A checkpoint is the pair (temporal, conv_checkpoint). Ring tensors are scratch, never listed: whoever
    sends a slot with records pending folds first. A place given back twice is on the free list twice: the
    snapshot shows it. With ``tensors=None`` only the ledger is kept. ``touched`` collects the places changed
    since the caller last emptied it.
    """

    def __init__(self, num_places: int, pool: MambaPool, tensors: CheckpointTensors | None = None) -> None:
        if num_places < 1:
            raise ValueError(f"num_places: {num_places}, need at least 1")
        self.pool, self.tensors = pool, tensors
        self.places = [StoredCheckpoint() for _ in range(num_places)]
        self.touched: set[int] = set()
        self._free = deque(range(num_places))

    @property
    def num_free(self) -> int:
        """Places on the free list."""
        return len(self._free)

    @property
    def free_list(self) -> tuple[int, ...]:
        """The free list in the order in which places will be handed out."""
        return tuple(self._free)

    def allocate(self) -> int | None:
        """Take a place off the free list, with its old contents still in it; ``None`` if none is free."""
        place = self._free.popleft() if self._free else None
        if place is not None:
            self.touched.add(place)
        return place

    def deallocate(self, place: int) -> None:
        """Put ``place`` at the end of the free list; what it holds stays as it is."""
        self._free.append(place)
        self.touched.add(place)

    def components(self) -> tuple[str, ...]:
        """Name the tensors of a checkpoint that go from slot to place and back. No ring, no cursor."""
        window = "conv" if self.pool.shape.ring_length is None else "conv_checkpoint"
        return ("temporal", window)

    def save(self, slot: int, place: int) -> Moved:
        """Copy the checkpoint of the pool's ``slot`` into ``place``; the slot stays as it is.

        The slot must be folded (``write_pos == 0``): its pending records do not go along.
        """
        if self.tensors is not None:
            self.tensors.save(slot, place)
        entry, kept = self.pool.ledger.slots[slot], self.places[place]
        kept.temporal, kept.temporal_log = entry.temporal, entry.temporal_log
        if entry.conv_checkpoint is None:
            kept.conv, kept.conv_log = entry.conv, entry.conv_log
        else:
            kept.conv, kept.conv_log = entry.conv_checkpoint, entry.conv_checkpoint_log
        kept.written = self.pool.step
        self.touched.add(place)
        return Moved(slot, place, self.pool.pending(slot), kept.temporal.length)

    def load(self, place: int, slot: int) -> Moved:
        """Copy the checkpoint in ``place`` into the pool's ``slot``, both windows, with an empty ring."""
        if self.tensors is not None:
            self.tensors.load(place, slot)
        entry, kept = self.pool.ledger.slots[slot], self.places[place]
        entry.temporal, entry.temporal_log = kept.temporal, kept.temporal_log
        entry.conv, entry.conv_log = kept.conv, kept.conv_log
        if entry.conv_checkpoint is not None:
            entry.conv_checkpoint, entry.conv_checkpoint_log = kept.conv, kept.conv_log
        entry.written = self.pool.step
        self.pool.reset_cursor(slot)
        self.pool.touched.add(slot)
        return Moved(place, slot, 0, kept.temporal.length)
