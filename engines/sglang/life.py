"""Our side of one request: its tokens, and how many of them have gone where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from replaylife.lifecycle.snapshot import Phase, RequestView
from replaylife.pool import EMPTY, Fold


@dataclass(slots=True)
class Life:
    """One request. ``request`` is SGLang's own object and keeps the books; what is here is what we fed it.

    ``tokens`` are the prompt and every sampled token, ``[0, executed)`` of them in the tensors and
    ``absorbed`` their fold. ``number`` names the request in ring records. ``copies`` counts its
    copy-on-writes.
    """

    id: str
    number: int
    request: Any
    tokens: list[int]
    prompt_len: int
    cached: int = 0
    executed: int = 0
    absorbed: Fold = EMPTY
    copies: int = 0

    @property
    def phase(self) -> Phase:
        """Whether prompt tokens are left."""
        return "prefill" if self.executed < self.prompt_len else "decode"

    @property
    def slot(self) -> int | None:
        """The slot of its live state, ``None`` until its first chunk unless a match has taken one."""
        index = self.request.kv.mamba_pool_idx
        return None if index is None else int(index)

    @property
    def held_slot(self) -> int:
        """The slot of a request that has run. Raises ``RuntimeError`` if it has none."""
        if self.slot is None:
            raise RuntimeError(f"request {self.id!r} holds no slot")
        return self.slot

    @property
    def track_slots(self) -> tuple[int, ...]:
        """The slots of its ping-pong buffer, in order of position."""
        buffer, empty = self.request.kv.mamba_ping_pong_track_buffer, self.request.kv.mamba_ping_pong_empty
        if buffer is None:
            return ()
        return tuple(int(slot) for slot, none in zip(buffer.tolist(), empty, strict=True) if not none)

    @property
    def reply(self) -> tuple[int, ...]:
        """Every sampled token, the one not yet in any key included."""
        return tuple(self.tokens[self.prompt_len : self.executed + 1])

    def fold(self, length: int) -> Fold:
        """Return the fold of its first ``length`` tokens."""
        return EMPTY.after(self.tokens[:length])

    def execute_to(self, end: int) -> None:
        """Tokens ``[0, end)`` are in the tensors, and the host has seen it: there is no overlap here."""
        self.absorbed = self.absorbed.after(self.tokens[self.executed : end])
        self.executed = end

    def start_at(self, cached: int) -> None:
        """Begin with ``cached`` tokens taken from the tree."""
        self.cached = self.executed = cached
        self.absorbed = self.fold(cached)

    def stamps(self) -> tuple[tuple[int, Fold], ...]:
        """Which tokens SGLang says the checkpoints in the track slots cover."""
        kv = self.request.kv
        if kv.mamba_ping_pong_track_buffer is None:
            return ()
        slots = kv.mamba_ping_pong_track_buffer.tolist()
        last = kv.mamba_last_track_idx
        named = [(slots[last], kv.mamba_last_track_seqlen)]
        if len(slots) > 1:
            named.append((slots[1 - last], kv.mamba_prev_track_seqlen))
        return tuple((int(slot), self.fold(length)) for slot, length in named if length is not None)

    def pending_cow(self) -> tuple[int, int] | None:
        """The copy recorded at match time that has not run, as (source, destination)."""
        source, slot = self.request.kv.mamba_cow_src_index, self.slot
        return None if source is None or slot is None else (int(source), slot)

    def view(self, id_of: Callable[[int], int | None]) -> RequestView:
        """Return the request as a snapshot shows it; ``id_of`` gives our id of a node of SGLang's."""
        kv, lock = self.request.kv, self.request.lock
        owned = kv.kv_allocated_len - kv.cache_protected_len if kv.holds_kv else 0
        return RequestView(
            id=self.id,
            phase=self.phase,
            prompt_len=self.prompt_len,
            scheduled=self.executed,
            executed=self.executed,
            committed=self.executed,
            tokens=self.absorbed,
            cached=self.cached,
            slot=self.slot,
            track_slots=self.track_slots,
            stamps=self.stamps(),
            locked=None if lock is None else id_of(lock.node),
            kv_tokens=owned,
            pending_cow=self.pending_cow(),
            copies=self.copies,
        )
