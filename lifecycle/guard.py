"""Which actions can be applied now, and why the others cannot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from replaylife.lifecycle.actions import (
    Abort,
    AbortCopy,
    Action,
    Admit,
    Cancel,
    Checkpoint,
    Commit,
    Draft,
    EndSession,
    EvictHost,
    EvictKv,
    EvictStates,
    Execute,
    Finish,
    FinishCopy,
    Flush,
    Forward,
    Load,
    Offload,
    Prefill,
    Probe,
    Retract,
    Schedule,
    Transfer,
    Verify,
)
from replaylife.lifecycle.config import CacheConfig
from replaylife.lifecycle.guard_copies import CopyGuard
from replaylife.lifecycle.host_tier import HostTier
from replaylife.lifecycle.protocol import ActionRefused
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.stepper import MAX_IN_FLIGHT, Stepper
from replaylife.lifecycle.store import StateStore
from replaylife.lifecycle.strategies import Strategy


class Guard:
    """Looks at an engine's requests, store and steps; changes nothing."""

    def __init__(
        self,
        cache: CacheConfig,
        store: StateStore,
        strategy: Strategy,
        requests: Mapping[str, Request],
        stepper: Stepper,
        tier: HostTier,
    ) -> None:
        self._cache, self._store, self._strategy = cache, store, strategy
        self._requests, self._stepper = requests, stepper
        self._copies = CopyGuard(store.tree, requests, tier)

    def enabled(self) -> Iterable[Action]:
        """Return the actions on present requests that can be applied now.

        Admissions and verify windows are the caller's.
        """
        for action in self._candidates():
            try:
                self.require(action)
            except ActionRefused:
                continue
            yield action

    def _candidates(self) -> Iterable[Action]:
        for request in self._requests.values():
            left = request.prompt_len - request.scheduled
            chunks = tuple(((request.id, count),) for count in range(1, left + 1))
            rows = (request.id,) if left <= 0 else ()
            yield from (Prefill(*chunk[0]) for chunk in chunks)
            yield Forward(rows)
            yield from (Schedule((), chunk) for chunk in chunks)
            yield Schedule(rows)
            yield from (Retract(request.id), Abort(request.id), Flush(request.id))
            yield from (Checkpoint(request.id), Finish(request.id))
        yield from (Execute(), Commit())
        if self._store.tree.num_states:
            yield EvictStates(1)
        if self._store.tree.num_kv_tokens:
            yield EvictKv(1)
        yield from self._copies.candidates()

    def require(self, action: Action) -> None:
        """Raise :class:`ActionRefused`, saying why and what to do, if the action is not enabled."""
        match action:
            case Admit(name, tokens):
                self._refuse_if(
                    name in self._requests, action, "a request of this name is running; finish it"
                )
                self._refuse_if(not tokens, action, "the prompt is empty, need at least one token")
            case Probe(tokens):
                self._refuse_if(not tokens, action, "the prompt is empty, need at least one token")
            case Prefill(name, count):
                self._require_whole_step(action)
                self._require_chunk(action, name, count)
            case Forward() | Schedule():
                self._require_step(action)
            case Verify() | Draft():
                self._require_windows(action)
            case Execute() | Commit():
                self._require_stage(action)
            case Checkpoint(name) | Flush(name):
                self._require_idle(action, name)
            case Finish(name):
                self._require_prefilled(action, self._require_running(action, name))
            case Retract(name) | Abort(name):
                self._require_running(action, name)
            case EvictStates(count) | EvictKv(count):
                self._refuse_if(count < 1, action, "need at least 1")
            case Transfer(name):
                self._copies.require(action)
                self._require_idle(action, name)
            case Offload() | Load() | FinishCopy() | AbortCopy() | EvictHost() | Cancel() | EndSession():
                self._copies.require(action)

    @staticmethod
    def _refuse_if(refused: bool, action: Action, why: str) -> None:
        if refused:
            raise ActionRefused(f"{action}: {why}")

    def _require_running(self, action: Action, name: str) -> Request:
        request = self._requests.get(name)
        if request is None:
            running = ", ".join(self._requests) or "none"
            raise ActionRefused(f"{action}: no such request is running (running: {running})")
        self._refuse_if(request.closing is not None, action, f"the request has ended ({request.closing})")
        return request

    def _require_prefilled(self, action: Action, request: Request) -> None:
        left = request.prompt_len - request.committed
        why = f"{left} prompt tokens are not prefilled and committed; prefill them first"
        self._refuse_if(left > 0, action, why)

    def _require_idle(self, action: Action, name: str) -> None:
        request = self._require_running(action, name)
        self._require_prefilled(action, request)
        self._refuse_if(request.in_flight > 0, action, "a step of this request is in flight; commit it first")
        on_grid = isinstance(action, Flush | Transfer) or not self._strategy.on_grid
        grid = self._cache.grid
        why = f"a checkpoint at {request.committed} is not on the grid of {grid} that the strategy needs"
        self._refuse_if(not on_grid and request.committed % grid != 0, action, why)

    def _require_whole_step(self, action: Action) -> None:
        busy = len(self._stepper.in_flight)
        self._refuse_if(busy > 0, action, f"{busy} steps are in flight; execute and commit them first")

    def _require_step(self, action: Forward | Schedule) -> None:
        if isinstance(action, Forward):
            self._require_whole_step(action)
        else:
            self._refuse_if(not self._cache.overlap, action, "need cache.overlap: on")
            full = len(self._stepper.in_flight) >= MAX_IN_FLIGHT
            self._refuse_if(full, action, f"{MAX_IN_FLIGHT} steps are in flight; commit one first")
            open_window = any(row.window for step in self._stepper.in_flight for row in step.rows)
            why = "a verify window is open; where the next step begins is known when it commits"
            self._refuse_if(open_window, action, why)
        names = [*action.rows, *(name for name, _ in action.chunks)]
        need = "need at least one row, and each request once"
        self._refuse_if(not names or len(set(names)) != len(names), action, need)
        for name in action.rows:
            self._require_decoding(action, name)
        for name, count in action.chunks:
            self._require_chunk(action, name, count)
        self._require_room(action)

    def _require_decoding(self, action: Action, name: str) -> None:
        request = self._require_running(action, name)
        left = request.prompt_len - request.scheduled
        self._refuse_if(left > 0, action, f"{left} prompt tokens of {name} are not prefilled")

    def _require_windows(self, action: Verify | Draft) -> None:
        """A window begins where the step before it ended, and is taken back by the cursor of a ring."""
        off = "rejected tokens cannot be taken out of a state without a ring; turn cache.replayssm on"
        self._refuse_if(not self._cache.replayssm, action, off)
        self._require_whole_step(action)
        names = [name for name, _, _ in action.rows]
        need = "need at least one row, and each request once"
        self._refuse_if(not names or len(set(names)) != len(names), action, need)
        for name, window, keep in action.rows:
            self._require_decoding(action, name)
            limit = self._cache.ring_length
            why = f"a window of {window} tokens for {name}, need 1 to {limit} (cache.ring_length)"
            self._refuse_if(not 1 <= window <= limit, action, why)
            why = f"keeps {keep} of {window} tokens of {name}, need 1 to {window}"
            self._refuse_if(not 1 <= keep <= window, action, why)
        self._require_kv(action, sum(window for _, window, _ in action.rows))

    def _require_kv(self, action: Action, count: int) -> None:
        kv = self._store.kv
        why = (
            f"needs {count} key-value tokens, {kv.num_free} of {kv.capacity} are free and none can be "
            "evicted; finish a request or raise kv_tokens"
        )
        self._refuse_if(not self._store.can_take_kv(count), action, why)

    def _require_room(self, action: Forward | Schedule) -> None:
        count = len(action.rows)
        self._require_kv(action, count)
        padded, limit = action.pad_to, self._cache.graph_rows
        why = f"{count} decode rows do not fit in a batch of {padded}"
        self._refuse_if(padded is not None and padded < count, action, why)
        why = f"{max(count, padded or 0)} decode rows, the graph has {limit}; raise cache.graph_rows"
        self._refuse_if(limit is not None and max(count, padded or 0) > limit, action, why)

    def _require_chunk(self, action: Action, name: str, count: int) -> None:
        request = self._require_running(action, name)
        left = request.prompt_len - request.scheduled
        if left <= 0:
            raise ActionRefused(f"{action}: the prompt of {name} is complete")
        why = f"{left} prompt tokens of {name} are left, need a chunk of 1 to {left}"
        self._refuse_if(not 1 <= count <= left, action, why)
        refused = self._strategy.refuse_chunk(request, request.scheduled, request.scheduled + count)
        self._refuse_if(refused is not None, action, refused or "")

    def _require_stage(self, action: Execute | Commit) -> None:
        stages = [step.stage for step in self._stepper.in_flight]
        if isinstance(action, Execute):
            self._refuse_if("scheduled" not in stages, action, "no step is scheduled; schedule one first")
        else:
            self._refuse_if(stages[:1] != ["executed"], action, "the oldest step has not executed yet")
