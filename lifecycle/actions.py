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


@dataclass(frozen=True, slots=True)
class Forward:
    """One decode step for the requests in ``rows``, in row order."""

    rows: tuple[str, ...]

    def __str__(self) -> str:
        return f"decode {', '.join(self.rows)}"


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


Action: TypeAlias = (
    Admit | Prefill | Forward | Checkpoint | Finish | Flush | Retract | Abort | EvictStates | EvictKv | Probe
)
