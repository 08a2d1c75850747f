"""What happened inside an action. Every event is plain data; an engine reports, an invariant reads."""

from __future__ import annotations

from typing import TypeAlias

from replaylife.lifecycle.events_outside import Cancelled as Cancelled
from replaylife.lifecycle.events_outside import CopyAborted as CopyAborted
from replaylife.lifecycle.events_outside import CopyFinished as CopyFinished
from replaylife.lifecycle.events_outside import CopyKind as CopyKind
from replaylife.lifecycle.events_outside import CopyRefused as CopyRefused
from replaylife.lifecycle.events_outside import CopyStarted as CopyStarted
from replaylife.lifecycle.events_outside import PlaceFreed as PlaceFreed
from replaylife.lifecycle.events_outside import PlaceKind as PlaceKind
from replaylife.lifecycle.plain import plain


@plain
class Matched:
    """A prompt met the tree: ``kv_len`` tokens have key-value, the state to reuse covers ``state_len``.

    ``request`` is ``None`` for a probe, which uses nothing.
    """

    request: str | None
    kv_len: int
    state_len: int
    node: int | None


@plain
class AdmissionRejected:
    """An admission was tried and rolled back; the request holds nothing.

    ``node`` is the one that it had matched, and pinned until it was rejected.
    """

    request: str
    reason: str
    node: int | None


@plain
class Allocated:
    """A slot left the free list."""

    slot: int
    holder: str


@plain
class Freed:
    """A slot returned to the free list."""

    slot: int
    reason: str


@plain
class CheckpointCopied:
    """The checkpoint of ``src`` was copied to ``dst``; ``pending`` is the source's cursor at the copy.

    ``purpose`` is ``cow`` (a request takes the tree's state) or ``publish`` (the tree takes a request's).
    """

    src: int
    dst: int
    pending: int
    length: int
    purpose: str
    request: str


@plain
class StateFolded:
    """``records`` pending records of ``slot`` were folded; temporal then covers ``[0, length)``."""

    slot: int
    records: int
    length: int
    forced: bool


@plain
class Prefilled:
    """Prompt tokens ``[start, end)`` ran; ``sampled`` is the first reply token after the last chunk."""

    request: str
    slot: int
    start: int
    end: int
    sampled: int | None


@plain
class Decoded:
    """One row of a decode step: the token at ``position`` went in, ``sampled`` came out.

    ``cursor_before`` and ``cursor_after`` are the row's write_pos around the whole step (``None`` with
    ReplaySSM off); ``tracked`` says whether the new length is a track point.
    """

    request: str
    slot: int
    position: int
    sampled: int
    cursor_before: int | None
    cursor_after: int | None
    tracked: bool


@plain
class Drafted:
    """A verify window ran: ``tokens`` went in at ``position`` and after, all their records are in the ring.

    ``cursor_before`` is write_pos before the step (before a fold that made room, too), ``cursor_after`` past
    the window's records.
    """

    request: str
    slot: int
    position: int
    tokens: tuple[int, ...]
    cursor_before: int
    cursor_after: int


@plain
class Accepted:
    """A verify window of ``window`` tokens from ``position`` on was closed: ``tokens`` are those kept.

    ``sampled`` is what the model sampled after each of them, the last one the next token to go in.
    ``cursor_after`` is write_pos once the others were rejected (and a full ring folded).
    """

    request: str
    slot: int
    position: int
    window: int
    tokens: tuple[int, ...]
    sampled: tuple[int, ...]
    cursor_after: int


@plain
class CheckpointFolded:
    """A checkpoint inside a verify window: temporal of ``src`` and its first ``records`` ring records were
    folded into ``dst``, for the request's first ``length`` tokens. ``src`` was left alone.
    """

    src: int
    dst: int
    records: int
    length: int
    request: str


@plain
class StepScheduled:
    """A step was decided on: one (request, start, end) per row, tokens ``[start, end)``."""

    number: int
    rows: tuple[tuple[str, int, int], ...]


@plain
class StepCommitted:
    """The host has seen a step; ``discarded`` requests had ended before."""

    number: int
    discarded: tuple[str, ...]


@plain
class Published:
    """The tree node of ``key_len`` tokens took ``slot`` as its state. ``purpose``: chunk,
    track, branch, block, checkpoint or finish.
    """

    request: str
    node: int
    slot: int
    key_len: int
    purpose: str


@plain
class PublishSkipped:
    """Nothing was given to the tree, and why. ``node`` already had a state and counts as used by this."""

    request: str
    node: int | None
    key_len: int
    reason: str


@plain
class Evicted:
    """States and key-value tokens left the tree to make room for ``purpose``: ``state``, ``kv`` or ``host``.

    ``session``: because a conversation has ended. ``hosts`` are the places of the copies that went.
    """

    purpose: str

    slots: tuple[int, ...]
    kv_tokens: int
    tombstoned: tuple[int, ...]
    removed: tuple[int, ...]
    hosts: tuple[int, ...] = ()


@plain
class Released:
    """A request, retracted or aborted, gave up all it held.

    ``pending`` records were in its ring; the host had seen ``committed`` of its tokens go in.
    """

    request: str
    pending: int
    retracted: bool
    committed: int


@plain
class Finished:
    """A request ended with ``committed`` tokens; ``dropped`` of them were cut from the donated key.

    ``reply`` are all sampled tokens. ``cold_reply`` is the float64 cold run's reply to the same prompt,
    ``None`` where nothing was computed.
    """

    request: str
    committed: int
    key_len: int
    dropped: int
    reply: tuple[int, ...]
    cold_reply: tuple[int, ...] | None


Event: TypeAlias = (
    Matched
    | AdmissionRejected
    | Allocated
    | Freed
    | CheckpointCopied
    | StateFolded
    | Prefilled
    | Decoded
    | Drafted
    | Accepted
    | CheckpointFolded
    | StepScheduled
    | StepCommitted
    | Published
    | PublishSkipped
    | Evicted
    | Released
    | Finished
    | CopyStarted
    | CopyFinished
    | CopyAborted
    | CopyRefused
    | PlaceFreed
    | Cancelled
)
