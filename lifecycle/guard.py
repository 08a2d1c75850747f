"""Which actions can be applied now, and why the others cannot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from replaylife.lifecycle.actions import (
    Abort,
    Action,
    Admit,
    Checkpoint,
    EvictKv,
    EvictStates,
    Finish,
    Flush,
    Forward,
    Prefill,
    Probe,
    Retract,
)
from replaylife.lifecycle.protocol import ActionRefused
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.store import StateStore


class Guard:
    """Looks at an engine's requests and store; changes nothing."""

    def __init__(self, store: StateStore, requests: Mapping[str, Request]) -> None:
        self._store, self._requests = store, requests

    def enabled(self) -> Iterable[Action]:
        """Return the actions on present requests that can be applied now (admissions are the caller's)."""
        for request in self._requests.values():
            yield from (Retract(request.id), Abort(request.id))
            if request.phase == "prefill":
                left = request.prompt_len - request.executed
                yield from (Prefill(request.id, count) for count in range(1, left + 1))
                continue
            if self._store.can_take_kv(1):
                yield Forward((request.id,))
            yield from (Flush(request.id), Checkpoint(request.id), Finish(request.id))
        if self._store.tree.num_states:
            yield EvictStates(1)
        if self._store.tree.num_kv_tokens:
            yield EvictKv(1)

    def require(self, action: Action) -> None:
        """Raise :class:`ActionRefused`, saying why and what to do, if the action is not enabled."""
        match action:
            case Admit(name, tokens):
                if name in self._requests:
                    raise ActionRefused(f"{action}: a request of this name is running; finish it first")
                if not tokens:
                    raise ActionRefused(f"{action}: the prompt is empty, need at least one token")
            case Prefill(name, count):
                left = self._require_phase(action, name, "prefill").prompt_len - self._requests[name].executed
                if not 1 <= count <= left:
                    raise ActionRefused(
                        f"{action}: {left} prompt tokens are left, need a chunk of 1 to {left}"
                    )
            case Forward(rows):
                self._require_rows(action, rows)
            case Checkpoint(name) | Finish(name) | Flush(name):
                self._require_phase(action, name, "decode")
            case Retract(name) | Abort(name):
                self._require_running(action, name)
            case EvictStates(count) | EvictKv(count):
                if count < 1:
                    raise ActionRefused(f"{action}: need at least 1")
            case Probe(tokens):
                if not tokens:
                    raise ActionRefused(f"{action}: the prompt is empty, need at least one token")

    def _require_running(self, action: Action, name: str) -> Request:
        request = self._requests.get(name)
        if request is None:
            running = ", ".join(self._requests) or "none"
            raise ActionRefused(f"{action}: no such request is running (running: {running})")
        return request

    def _require_phase(self, action: Action, name: str, phase: str) -> Request:
        request = self._require_running(action, name)
        if request.phase != phase:
            left = request.prompt_len - request.executed
            why = f"{left} prompt tokens are not prefilled" if phase == "decode" else "its prompt is complete"
            raise ActionRefused(f"{action}: the request is in phase {request.phase}, need {phase} ({why})")
        return request

    def _require_rows(self, action: Action, rows: Sequence[str]) -> None:
        if not rows or len(set(rows)) != len(rows):
            raise ActionRefused(f"{action}: need at least one row, and each request once")
        for name in rows:
            self._require_phase(action, name, "decode")
        if not self._store.can_take_kv(len(rows)):
            raise ActionRefused(
                f"{action}: needs {len(rows)} key-value tokens, {self._store.kv.num_free} of "
                f"{self._store.kv.capacity} are free and none can be evicted; finish one or raise kv_tokens"
            )
