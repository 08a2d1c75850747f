"""MambaPool: the recurrent-state slots, their tensors, their cursors and their ledger."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from replaylife.pool.advice import SlowReplayWarning, slow_replay
from replaylife.pool.allocator import SlotAllocator
from replaylife.pool.ledger import Ledger, Record
from replaylife.pool.shape import PoolShape

if TYPE_CHECKING:
    from replaylife.pool.tensors import PoolTensors


class Folded(NamedTuple):
    """``records`` pending records of ``slot`` were folded; ``temporal`` then covers ``[0, length)``."""

    slot: int
    records: int
    length: int


class Copied(NamedTuple):
    """The checkpoint of ``src`` was copied to ``dst``; ``pending`` is the source's cursor at the copy."""

    src: int
    dst: int
    pending: int
    length: int


class MambaPool:
    """Slots of recurrent state. Knows slots, not keys.

    A slot's state is ``temporal`` for tokens ``[0, checkpoint_len)`` and the first ``write_pos`` ring
    records for ``[checkpoint_len, executed_len)``. Its *checkpoint* is the pair (temporal,
    conv_checkpoint). Ring tensors are scratch and never leave their slot: whatever leaves folds first, or
    truncates its claim to the checkpoint. With ``tensors=None`` only the ledger is kept and torch is never
    imported. With ``shape.ring_length=None`` ReplaySSM is off: no ring, no cursor, no conv checkpoint.

    ``step`` is the number of the step in progress (the caller sets it); ``touched`` collects the slots
    changed since the caller last emptied it.
    """

    def __init__(
        self, shape: PoolShape, tensors: PoolTensors | None = None, *, log_records: bool = False
    ) -> None:
        advice = slow_replay(shape)
        if advice is not None:
            warnings.warn(advice, SlowReplayWarning, stacklevel=2)
        self.shape = shape
        self.tensors = tensors
        self.allocator = SlotAllocator(shape.slots)
        self.ledger = Ledger(shape.slots, shape.ring_length, logging=log_records)
        self.write_pos: list[int] | None = None if shape.ring_length is None else [0] * shape.slots
        self.step = 0
        self.touched: set[int] = set()

    def clone(self) -> MambaPool:
        """Return an independent copy of a pool without tensors.

        Raises ``ValueError`` for a pool with tensors: those worlds are played again instead.
        """
        if self.tensors is not None:
            raise ValueError("pool: has tensors, need a ledger-only pool to clone; play the actions again")
        twin = object.__new__(type(self))
        twin.shape, twin.tensors, twin.step = self.shape, None, self.step
        twin.allocator, twin.ledger = self.allocator.clone(), self.ledger.clone()
        twin.write_pos = None if self.write_pos is None else list(self.write_pos)
        twin.touched = set(self.touched)
        return twin

    def budget_bytes(self) -> int:
        """Return the bytes that a memory plan sets aside for the pool: every slot, ring included."""
        return self.shape.slots * self.shape.slot_bytes()

    # -- slots ---------------------------------------------------------------------------------------

    def alloc(self) -> int | None:
        """Take a free slot with its cursor at 0; ``None`` when there is none.

        Its temporal and conv still hold what the previous owner left: ``clear`` or ``copy_from`` fills them.
        """
        slot = self.allocator.allocate()
        if slot is not None:
            self.reset_cursor(slot)
            self.touched.add(slot)
        return slot

    def free(self, slot: int) -> None:
        """Put ``slot`` back on the free list; tensors and cursor stay as they are."""
        self.allocator.deallocate(slot)
        self.touched.add(slot)

    def clear(self, slot: int) -> None:
        """Zero temporal, conv and conv_checkpoint of ``slot``; ring and cursor stay."""
        if self.tensors is not None:
            self.tensors.clear(slot)
        self.ledger.clear(slot, self.step)
        self.touched.add(slot)

    # -- checkpoints ---------------------------------------------------------------------------------

    def copy_from(self, src: int, dst: int) -> Copied:
        """Copy the checkpoint of ``src`` into ``dst`` and set the cursor of ``dst`` to 0.

        ``src`` stays as it is and must be folded (``write_pos[src] == 0``): its pending records are not
        copied. Source of the rule: sgl-project/sglang#28451.
        """
        pending = self.pending(src)
        if self.tensors is not None:
            self.tensors.copy_checkpoint(src, dst)
        self.ledger.copy_temporal(src, dst, self.step)
        self.ledger.copy_conv(src, dst)
        self.reset_cursor(dst)
        self.touched.add(dst)
        return Copied(src, dst, pending, self.ledger.slots[dst].temporal.length)

    def fold(self, slots: Iterable[int]) -> tuple[Folded, ...]:
        """Fold all pending records of each slot into its temporal, all layers at once.

        conv_checkpoint becomes the live window, the cursor 0. Slots with nothing pending are left alone.
        Padding rows (slot -1) are skipped. Returns one :class:`Folded` per slot that folded.
        """
        due = [slot for slot in dict.fromkeys(slots) if slot >= 0 and self.pending(slot)]
        if not due:
            return ()
        counts = [self.pending(slot) for slot in due]
        self._fold_records(due, counts, due)
        for slot in due:
            self.save_conv(slot)
            self.reset_cursor(slot)
        return tuple(
            Folded(slot, count, self.ledger.slots[slot].temporal.length)
            for slot, count in zip(due, counts, strict=True)
        )

    def fold_into(self, slots: Sequence[int], counts: Sequence[int], dst: Sequence[int]) -> None:
        """Write the state after the first ``counts`` records of each slot into temporal of ``dst``.

        The source slots, their rings and cursors stay as they are; conv of ``dst`` is the caller's to set.
        """
        self._fold_records(slots, counts, dst)

    def _fold_records(self, slots: Sequence[int], counts: Sequence[int], dst: Sequence[int]) -> None:
        if self.write_pos is None:
            raise ValueError("fold: the pool has no ring (ReplaySSM is off), need ring_length")
        if self.tensors is not None:
            self.tensors.fold(slots, counts, dst)
        for slot, count, target in zip(slots, counts, dst, strict=True):
            self.ledger.fold(slot, count, target, self.step)
            self.touched.add(target)

    def save_conv(self, slot: int) -> None:
        """Set conv_checkpoint of ``slot`` to its live window. Nothing to do with ReplaySSM off."""
        if self.tensors is not None:
            self.tensors.save_conv(slot)
        self.ledger.save_conv(slot)
        self.touched.add(slot)

    def rewind_conv(self, slot: int) -> None:
        """Set the live window of ``slot`` back to conv_checkpoint, so that both stand where temporal does."""
        if self.tensors is not None:
            self.tensors.rewind_conv(slot)
        self.ledger.rewind_conv(slot)
        self.touched.add(slot)

    # -- cursor --------------------------------------------------------------------------------------

    def pending(self, slot: int) -> int:
        """Records in the ring of ``slot`` that temporal has not absorbed (0 with ReplaySSM off)."""
        return 0 if self.write_pos is None else self.write_pos[slot]

    def reset_cursor(self, slot: int) -> None:
        """Set the cursor of ``slot`` to 0; the records it pointed past are forgotten."""
        self._set_cursor(slot, 0)

    def advance(self, slots: Iterable[int]) -> None:
        """Advance the cursor by one, once per distinct slot; may reach L until the step folds.

        Padding rows (slot -1) are skipped.
        """
        for slot in dict.fromkeys(slots):
            if slot >= 0:
                self._set_cursor(slot, self.pending(slot) + 1)

    def _set_cursor(self, slot: int, value: int) -> None:
        if self.write_pos is None:
            return
        self.write_pos[slot] = value
        if self.tensors is not None:
            self.tensors.set_cursor(slot, value)
        self.touched.add(slot)

    # -- what a forward has written ------------------------------------------------------------------

    def absorb(self, slot: int, records: Sequence[Record]) -> None:
        """Book a prefill chunk: temporal and conv have absorbed it, and conv_checkpoint is set to conv."""
        self.ledger.absorb(slot, records, self.step)
        self.save_conv(slot)

    def append(self, rows: Iterable[tuple[int, Record]]) -> None:
        """Book a decode step's record per (slot, record): in the ring, or in temporal with ReplaySSM off.

        Padding rows (slot -1) are skipped.
        """
        for slot, record in rows:
            if slot < 0:
                continue
            if self.write_pos is None:
                self.ledger.absorb(slot, (record,), self.step)
            else:
                self.ledger.append(slot, self.write_pos[slot], record)
            self.touched.add(slot)

    # -- verify windows ------------------------------------------------------------------------------

    def append_window(self, slot: int, records: Sequence[Record]) -> None:
        """Book a verify window: its records are in the ring, the cursor is past them, the window is open.

        There must be room for all of them. While the window is open the live window stands at its end, and
        can be set to any of its positions.
        """
        start = self.pending(slot)
        self.ledger.open_window(slot)
        for offset, record in enumerate(records):
            self.ledger.append(slot, start + offset, record)
        self._set_cursor(slot, start + len(records))

    def checkpoint_in_window(self, slot: int, records: int, position: int, dst: int) -> None:
        """Write the state after ``position`` tokens of an open window into the checkpoint of ``dst``.

        ``records`` are those in the ring by then. The source slot, its ring and its cursor stay as they are;
        ``dst`` has both convolution windows there and its cursor at 0.
        """
        self.fold_into([slot], [records], [dst])
        if self.tensors is not None:
            self.tensors.window_into(slot, position, dst)
        self.ledger.window_into(slot, position, dst)
        self.reset_cursor(dst)
        self.touched.add(dst)

    def set_back(self, slot: int, count: int) -> None:
        """Set the cursor of ``slot`` back by ``count``: the records of rejected tokens are behind it."""
        self._set_cursor(slot, self.pending(slot) - count)

    def rewind_window(self, slot: int, position: int) -> None:
        """Set the live window of ``slot`` to what it was after ``position`` tokens of its open window."""
        if self.tensors is not None:
            self.tensors.rewind_window(slot, position)
        self.ledger.rewind_window(slot, position)
        self.touched.add(slot)

    def close_window(self, slot: int) -> None:
        """Forget what was kept for the open window of ``slot``."""
        if self.tensors is not None:
            self.tensors.close_window(slot)
        self.ledger.close_window(slot)
