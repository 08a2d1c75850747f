"""What a replay counts, from the events of the engine alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from replaylife.lifecycle.events import (
    AdmissionRejected,
    CheckpointCopied,
    Decoded,
    Event,
    Evicted,
    Finished,
    Matched,
    Prefilled,
    Published,
    PublishSkipped,
    Released,
    StateFolded,
)

ENDED_KEPT = 16_384  # finished requests whose donated length is remembered, for those who continue them


@dataclass(slots=True)
class Totals:
    """Sums over a replay; tokens unless said otherwise.

    ``hit`` of the ``prompt`` tokens were reused. Of the others, ``again_truncated`` had been computed by
    the request that this one continues and were cut from its key at finish, and ``again_stateless`` are in
    the tree as key-value without a state at their end. ``folds`` counts folds of a slot, ``forced_folds``
    those in mid-ring; ``copies`` checkpoints copied; ``evicted_states`` slots, ``evicted_kv`` tokens.
    ``peak_slots`` is the most that were in use at once, ``steps`` the forwards taken.
    """

    requests: int = 0
    prompt: int = 0
    hit: int = 0
    hits: int = 0
    prefilled: int = 0
    decoded: int = 0
    again_truncated: int = 0
    again_stateless: int = 0
    folds: int = 0
    forced_folds: int = 0
    folded_records: int = 0
    copies: int = 0
    evicted_states: int = 0
    evicted_kv: int = 0
    rejected: int = 0
    retracted: int = 0
    peak_slots: int = 0
    steps: int = 0
    violations: int = 0

    @property
    def hit_rate(self) -> float:
        """The share of prompt tokens that were reused."""
        return self.hit / self.prompt if self.prompt else 0.0

    def record(self) -> dict[str, Any]:
        """Return plain data for JSON and CSV."""
        return {**asdict(self), "hit_rate": self.hit_rate}


class Ended(NamedTuple):
    """A finished request: its length, and the longest key that it gave the tree; what is between was cut."""

    committed: int
    kept: int


class Tally:
    """Keeps :class:`Totals` and, for a bounded number of ended requests, what became of their ends."""

    def __init__(self) -> None:
        self.totals = Totals()
        self._published: dict[str, int] = {}  # the longest key that a running request has in the tree
        self._ended: dict[str, Ended] = {}
        self._order: deque[str] = deque()

    def listen(self, events: Iterable[Event]) -> None:
        """Book what happened in one action, admissions apart."""
        totals = self.totals
        for event in events:
            kind = type(event)
            if kind is Decoded:
                totals.decoded += 1
            elif isinstance(event, StateFolded):
                totals.folds += 1
                totals.forced_folds += event.forced
                totals.folded_records += event.records
            elif isinstance(event, CheckpointCopied):
                totals.copies += 1
            elif isinstance(event, Published | PublishSkipped):
                if isinstance(event, Published) or event.node is not None:
                    longest = self._published.get(event.request, 0)
                    self._published[event.request] = max(longest, event.key_len)
            elif isinstance(event, Prefilled):
                totals.prefilled += event.end - event.start
            elif isinstance(event, Evicted):
                totals.evicted_states += len(event.slots)
                totals.evicted_kv += event.kv_tokens
            elif isinstance(event, Finished):
                self._end(event)
            elif isinstance(event, AdmissionRejected):
                totals.rejected += 1
            elif isinstance(event, Released):
                totals.retracted += event.retracted

    def admitted(self, match: Matched, prompt_len: int, continues: str | None) -> None:
        """Book a request that has come in: what it reuses, and what is prefilled although it was computed."""
        totals = self.totals
        totals.requests += 1
        totals.prompt += prompt_len
        totals.hit += match.state_len
        totals.hits += match.state_len > 0
        totals.again_stateless += match.kv_len - match.state_len
        earlier = None if continues is None else self._ended.get(continues)
        if earlier is not None:
            known = min(earlier.committed, prompt_len - 1)
            totals.again_truncated += max(0, known - max(match.kv_len, earlier.kept))

    def _end(self, event: Finished) -> None:
        kept = max(event.key_len, self._published.pop(event.request, 0))
        self._ended[event.request] = Ended(event.committed, kept)
        self._order.append(event.request)
        if len(self._order) > ENDED_KEPT:
            self._ended.pop(self._order.popleft(), None)
