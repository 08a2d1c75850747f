"""What every slot has absorbed: exact, cheap, and true without tensors.

A ledger entry is written only by the method that writes the tensor it stands for, so that a fault in
the one shows up against the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, overload

from replaylife.pool.runs import MODULUS as _MODULUS
from replaylife.pool.runs import MULTIPLIER as _MULTIPLIER
from replaylife.pool.runs import Runs


class Fold(NamedTuple):
    """The tokens ``[0, length)`` that one component has absorbed, with a running digest of their ids.

    Two folds are equal when they have absorbed the same token sequence; the digest is a polynomial hash
    modulo 2**61 - 1, so an accidental collision is of no practical weight.
    """

    length: int
    digest: int

    def then(self, token: int) -> Fold:
        """Return this fold with one more token absorbed."""
        return Fold(self.length + 1, (self.digest * _MULTIPLIER + token + 1) % _MODULUS)

    def after(self, tokens: Iterable[int]) -> Fold:
        """Return this fold with ``tokens`` absorbed in order; runs of consecutive ids cost one step each."""
        if type(tokens) is Runs:
            return Fold(self.length + len(tokens), tokens.onto(self.digest))
        length, digest = self
        for token in tokens:
            length += 1
            digest = (digest * _MULTIPLIER + token + 1) % _MODULUS
        return Fold(length, digest)


EMPTY = Fold(0, 0)


class Record(NamedTuple):
    """One ring entry: the request that wrote it, the position it stands for (from 0), its token id."""

    request: str
    position: int
    token: int


class RecordRun(Sequence[Record]):
    """The records of one request for tokens from ``start`` on, made only where somebody looks at one."""

    __slots__ = ("request", "start", "tokens")

    def __init__(self, request: str, start: int, tokens: Runs) -> None:
        self.request, self.start, self.tokens = request, start, tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[Record]:
        return (Record(self.request, self.start + i, token) for i, token in enumerate(self.tokens))

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> RecordRun: ...
    def __getitem__(self, index: int | slice) -> Record | RecordRun:
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            return RecordRun(self.request, self.start + start, self.tokens.cut(start, stop))
        return Record(self.request, self.start + index, self.tokens[index])


@dataclass(slots=True)
class SlotLedger:
    """What one slot's tensors hold.

    ``temporal`` covers ``[0, temporal.length)``, ``ring[:write_pos]`` the tokens after it, ``conv`` the
    window that ends at ``conv.length``. ``conv_checkpoint`` is ``None`` when ReplaySSM is off. ``ring``
    keeps entries behind the cursor too, as the tensors do: a stale record must be visible as stale.
    ``written`` is the step that last wrote ``temporal``. ``window`` has, while a verify window is open, the
    live window (and its records) at each of its positions, the one before it first; empty otherwise.
    """

    temporal: Fold
    conv: Fold
    conv_checkpoint: Fold | None
    ring: list[Record | None]
    written: int
    temporal_log: tuple[Record, ...] = ()
    conv_log: tuple[Record, ...] = ()
    conv_checkpoint_log: tuple[Record, ...] = ()
    window: list[tuple[Fold, tuple[Record, ...]]] = field(default_factory=list)

    def clone(self) -> SlotLedger:
        """Return an independent copy."""
        return SlotLedger(
            self.temporal,
            self.conv,
            self.conv_checkpoint,
            list(self.ring),
            self.written,
            self.temporal_log,
            self.conv_log,
            self.conv_checkpoint_log,
            list(self.window),
        )


class Ledger:
    """The ledger of a pool: one :class:`SlotLedger` per slot.

    With ``logging`` each component also keeps the records it absorbed, which is what the witness compares
    with the tensors, record by record; without it only length and digest are kept.
    """

    def __init__(self, num_slots: int, ring_length: int | None, *, logging: bool = False) -> None:
        checkpoint = None if ring_length is None else EMPTY
        self.slots = [
            SlotLedger(EMPTY, EMPTY, checkpoint, [None] * (ring_length or 0), 0) for _ in range(num_slots)
        ]
        self.logging = logging

    def clone(self) -> Ledger:
        """Return an independent copy."""
        twin = Ledger.__new__(Ledger)
        twin.slots = [slot.clone() for slot in self.slots]
        twin.logging = self.logging
        return twin

    def clear(self, slot: int, step: int) -> None:
        """Write: temporal and conv of ``slot`` are zero. Leaves the ring alone."""
        entry = self.slots[slot]
        entry.temporal = entry.conv = EMPTY
        entry.temporal_log = entry.conv_log = entry.conv_checkpoint_log = ()
        if entry.conv_checkpoint is not None:
            entry.conv_checkpoint = EMPTY
        entry.written = step

    def absorb(self, slot: int, records: Sequence[Record], step: int) -> None:
        """Write: temporal and conv of ``slot`` have absorbed ``records`` (a prefill chunk)."""
        entry = self.slots[slot]
        tokens = records.tokens if isinstance(records, RecordRun) else [record.token for record in records]
        entry.temporal = entry.temporal.after(tokens)
        entry.conv = entry.conv.after(tokens)
        entry.written = step
        if self.logging:
            entry.temporal_log += tuple(records)
            entry.conv_log += tuple(records)

    def append(self, slot: int, index: int, record: Record) -> None:
        """Write: ring entry ``index`` of ``slot`` holds ``record``, and conv has moved by its token."""
        entry = self.slots[slot]
        entry.ring[index] = record
        entry.conv = entry.conv.then(record.token)
        if self.logging:
            entry.conv_log += (record,)
        if entry.window:
            entry.window.append((entry.conv, entry.conv_log))

    def open_window(self, slot: int) -> None:
        """Keep, from now on, where the live window of ``slot`` stands after each record."""
        entry = self.slots[slot]
        entry.window = [(entry.conv, entry.conv_log)]

    def rewind_window(self, slot: int, position: int) -> None:
        """Write: live conv of ``slot`` is what it was at ``position`` of its open window."""
        entry = self.slots[slot]
        entry.conv, entry.conv_log = entry.window[position]

    def window_into(self, slot: int, position: int, dst: int) -> None:
        """Write: both windows of ``dst`` are that of ``slot`` at ``position`` of its open window."""
        target = self.slots[dst]
        target.conv, target.conv_log = self.slots[slot].window[position]
        if target.conv_checkpoint is not None:
            target.conv_checkpoint, target.conv_checkpoint_log = target.conv, target.conv_log

    def close_window(self, slot: int) -> None:
        """Forget where the live window of ``slot`` stood on the way."""
        self.slots[slot].window = []

    def fold(self, slot: int, count: int, dst: int, step: int) -> None:
        """Write: temporal of ``dst`` is temporal of ``slot`` plus its first ``count`` ring records."""
        entry, target = self.slots[slot], self.slots[dst]
        records = tuple(record for record in entry.ring[:count] if record is not None)
        target.temporal = entry.temporal.after(record.token for record in records)
        target.written = step
        if self.logging:
            target.temporal_log = entry.temporal_log + records

    def copy_temporal(self, src: int, dst: int, step: int) -> None:
        """Write: temporal of ``dst`` equals temporal of ``src``."""
        entry, target = self.slots[src], self.slots[dst]
        target.temporal, target.temporal_log = entry.temporal, entry.temporal_log
        target.written = step

    def save_conv(self, slot: int) -> None:
        """Write: conv_checkpoint of ``slot`` equals its live conv."""
        entry = self.slots[slot]
        if entry.conv_checkpoint is not None:
            entry.conv_checkpoint, entry.conv_checkpoint_log = entry.conv, entry.conv_log

    def rewind_conv(self, slot: int) -> None:
        """Write: live conv of ``slot`` equals its conv_checkpoint."""
        entry = self.slots[slot]
        if entry.conv_checkpoint is not None:
            entry.conv, entry.conv_log = entry.conv_checkpoint, entry.conv_checkpoint_log

    def copy_conv(self, src: int, dst: int) -> None:
        """Write: conv and conv_checkpoint of ``dst`` equal the checkpointed window of ``src``."""
        entry, target = self.slots[src], self.slots[dst]
        if entry.conv_checkpoint is None:
            target.conv, target.conv_log = entry.conv, entry.conv_log
        else:
            target.conv = target.conv_checkpoint = entry.conv_checkpoint
            target.conv_log = target.conv_checkpoint_log = entry.conv_checkpoint_log
