"""Cache strategies: when a running request leaves checkpoints, and what it donates at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod

from replaylife.lifecycle.request import Request
from replaylife.lifecycle.store import StateStore


class Strategy(ABC):
    """How checkpoints flow from requests to the tree.

    Adding one takes one class in one file and one line in :data:`STRATEGIES`.
    """

    def __init__(self, store: StateStore) -> None:
        self.store = store

    @abstractmethod
    def after_chunk(self, request: Request) -> None:
        """Publish after a prefill chunk (cache_unfinished_req). The request's ring is empty."""

    @abstractmethod
    def at_track_point(self, request: Request) -> None:
        """Publish at a track point. The request was folded at exactly this length in this step."""

    @abstractmethod
    def finish(self, request: Request) -> int:
        """Donate what the request holds (cache_finished_req) and return the length of the key."""


class NoBuffer(Strategy):
    """The request's only slot is donated at finish; live requests leave copies at chunk ends.

    Source: SGLang's ``no_buffer`` mamba scheduler strategy; the finish rule is sgl-project/sglang#28451.
    """

    def after_chunk(self, request: Request) -> None:
        """Copy the checkpoint at the chunk end into the tree."""
        self.store.publish_copy(request, "chunk")

    def at_track_point(self, request: Request) -> None:
        """Copy the checkpoint into the tree with ``track: snapshot``; keep nothing with ``fold-only``."""
        if self.store.cache.track == "snapshot":
            self.store.publish_copy(request, "track")

    def finish(self, request: Request) -> int:
        """Donate the slot: its state folded to the end first, or the key cut to the last fold."""
        if self.store.cache.finish == "fold":
            self.store.fold(request)
        key_len = self._donation_length(request)
        self._settle(request.held_slot)
        self.store.donate(request, key_len)
        return key_len

    def _settle(self, slot: int) -> None:
        """Leave only the checkpoint in ``slot``: later records are forgotten, the live window is rewound."""
        self.store.pool.reset_cursor(slot)
        self.store.pool.rewind_conv(slot)

    def _donation_length(self, request: Request) -> int:
        """Return how many tokens the slot's checkpoint covers: all committed but those in the ring."""
        return request.committed - self.store.pool.pending(request.held_slot)


STRATEGIES: dict[str, type[Strategy]] = {
    "no_buffer": NoBuffer,
}
