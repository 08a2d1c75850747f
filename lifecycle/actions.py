"""What can be done to an engine: the alphabet of scenarios, searches and recorded traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Admit:
    """Bring a request in: match its prompt, take a slot and key-value tokens, record the copy-on-write.

    ``tokens`` is the whole prompt.
    """

    request: str
    tokens: tuple[int, ...]

    def __str__(self) -> str:
        return f"admit {self.request} ({len(self.tokens)} prompt tokens)"


@dataclass(frozen=True, slots=True)
class Prefill:
    """Run the next ``count`` prompt tokens of a request as one chunk, then publish a checkpoint."""

    request: str
    count: int

    def __str__(self) -> str:
        return f"prefill {self.request} ({self.count} tokens)"


Chunks: TypeAlias = tuple[tuple[str, int], ...]


def _describe(rows: tuple[str, ...], chunks: Chunks) -> str:
    prefills = [f"prefill {request} ({count} tokens)" for request, count in chunks]
    decodes = [f"decode {', '.join(rows)}"] if rows else []
    return " + ".join([*decodes, *prefills])


@dataclass(frozen=True, slots=True)
class Forward:
    """One step, from schedule to commit: a decode row for each of ``rows``, in row order, and prefill chunks.

    ``chunks`` are (request, tokens) pairs that run in the same step. ``pad_to`` pads the decode rows to a
    batch size with rows that must do nothing.
    """

    rows: tuple[str, ...]
    chunks: Chunks = ()
    pad_to: int | None = None

    def __str__(self) -> str:
        return _describe(self.rows, self.chunks)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Decide the lengths and slots of a step as of :class:`Forward`; nothing is written yet."""

    rows: tuple[str, ...]
    chunks: Chunks = ()
    pad_to: int | None = None

    def __str__(self) -> str:
        return f"schedule {_describe(self.rows, self.chunks)}"


Windows: TypeAlias = tuple[tuple[str, int, int], ...]


def _describe_windows(rows: Windows) -> str:
    return ", ".join(f"{request} ({keep} of {window} tokens)" for request, window, keep in rows)


@dataclass(frozen=True, slots=True)
class Verify:
    """A verify window per row, from schedule to commit: speculative decoding's target step.

    ``rows`` are (request, window, keep): ``window`` tokens go through the model, the sampled one and
    ``window - 1`` drafts, of which the model confirms the first ``keep`` (1..window) and no more.
    """

    rows: Windows

    def __str__(self) -> str:
        return f"verify {_describe_windows(self.rows)}"


@dataclass(frozen=True, slots=True)
class Draft:
    """Run the windows of a :class:`Verify` and leave them open; the next :class:`Commit` closes them."""

    rows: Windows

    def __str__(self) -> str:
        return f"draft {_describe_windows(self.rows)}"


@dataclass(frozen=True, slots=True)
class Execute:
    """Write the tensors of the oldest step that is scheduled and not yet executed."""

    def __str__(self) -> str:
        return "execute"


@dataclass(frozen=True, slots=True)
class Commit:
    """The host sees the results of the oldest step, which has executed; its verify windows are closed."""

    def __str__(self) -> str:
        return "commit"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Publish a checkpoint of a running request at its committed length (cache_unfinished_req)."""

    request: str

    def __str__(self) -> str:
        return f"checkpoint {self.request}"


@dataclass(frozen=True, slots=True)
class Finish:
    """End a request and donate its slot to the tree (cache_finished_req)."""

    request: str

    def __str__(self) -> str:
        return f"finish {self.request}"


@dataclass(frozen=True, slots=True)
class Flush:
    """Fold whatever is pending in a request's ring."""

    request: str

    def __str__(self) -> str:
        return f"fold {self.request}"


@dataclass(frozen=True, slots=True)
class Retract:
    """Take a running request's memory away; it comes back later as an admission of all its tokens."""

    request: str

    def __str__(self) -> str:
        return f"retract {self.request}"


@dataclass(frozen=True, slots=True)
class Abort:
    """End a request without caching anything more of it."""

    request: str

    def __str__(self) -> str:
        return f"abort {self.request}"


@dataclass(frozen=True, slots=True)
class EvictStates:
    """Evict the ``count`` least recently used states that nobody pins."""

    count: int

    def __str__(self) -> str:
        return f"evict {self.count} states"


@dataclass(frozen=True, slots=True)
class EvictKv:
    """Evict leaves, least recently used first, until ``tokens`` key-value tokens are freed."""

    tokens: int

    def __str__(self) -> str:
        return f"evict {self.tokens} key-value tokens"


@dataclass(frozen=True, slots=True)
class Probe:
    """Ask what a prompt would reuse; changes nothing, not even recency."""

    tokens: tuple[int, ...]

    def __str__(self) -> str:
        return f"match ({len(self.tokens)} tokens)"


@dataclass(frozen=True, slots=True)
class Offload:
    """Begin to copy a tree node's checkpoint to host memory; the node stays pinned until the copy ends."""

    node: int

    def __str__(self) -> str:
        return f"offload node {self.node}"


@dataclass(frozen=True, slots=True)
class Load:
    """Begin to copy a tree node's checkpoint in host memory back to a slot; both stay pinned meanwhile."""

    node: int

    def __str__(self) -> str:
        return f"load node {self.node}"


@dataclass(frozen=True, slots=True)
class Transfer:
    """Begin to send a running request to another pool: its checkpoint, after a fold; no ring.

    The request holds its slot and does nothing until the copy has been acknowledged or has failed.
    """

    request: str

    def __str__(self) -> str:
        return f"transfer {self.request}"


@dataclass(frozen=True, slots=True)
class FinishCopy:
    """A copy in flight arrives: ``of`` is ``node 4`` (an offload or a load) or ``request a`` (a transfer)."""

    of: str

    def __str__(self) -> str:
        return f"finish the copy of {self.of}"


@dataclass(frozen=True, slots=True)
class AbortCopy:
    """A copy in flight fails: what was taken for it is put back, and nothing is claimed of it."""

    of: str

    def __str__(self) -> str:
        return f"abort the copy of {self.of}"


@dataclass(frozen=True, slots=True)
class EvictHost:
    """Evict the ``count`` least recently used copies in host memory that nobody pins."""

    count: int

    def __str__(self) -> str:
        return f"evict {self.count} copies in host memory"


@dataclass(frozen=True, slots=True)
class Cancel:
    """A request in the waiting queue (retracted, transferred or rejected) is aborted: it never comes back."""

    request: str

    def __str__(self) -> str:
        return f"cancel {self.request}"


@dataclass(frozen=True, slots=True)
class EndSession:
    """A conversation is over: everything of its branch that no other branch shares is released.

    ``tokens`` are all its tokens, ``request`` the last of its turns.
    """

    request: str
    tokens: tuple[int, ...]

    def __str__(self) -> str:
        return f"end the session of {self.request} ({len(self.tokens)} tokens)"


Action: TypeAlias = (
    Admit
    | Prefill
    | Forward
    | Schedule
    | Verify
    | Draft
    | Execute
    | Commit
    | Checkpoint
    | Finish
    | Flush
    | Retract
    | Abort
    | EvictStates
    | EvictKv
    | Probe
    | Offload
    | Load
    | Transfer
    | FinishCopy
    | AbortCopy
    | EvictHost
    | Cancel
    | EndSession
)
