"""The reference engine: the lifecycle of requests over pool, tree and compute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

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
from replaylife.lifecycle.compute import Compute, Row
from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.events import (
    AdmissionRejected,
    Decoded,
    Event,
    Finished,
    Matched,
    Prefilled,
    Released,
    StateFolded,
)
from replaylife.lifecycle.guard import Guard
from replaylife.lifecycle.planner import Planner
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.snapshot import Changed, Snapshot
from replaylife.lifecycle.snapshotter import Snapshotter
from replaylife.lifecycle.store import StateStore
from replaylife.lifecycle.strategy import Strategy


class ReferenceEngine:
    """Applies actions one at a time; every rule of the lifecycle runs through here.

    Build one with :class:`replaylife.lifecycle.factory.EngineFactory`. ``apply`` either changes the whole
    world or raises :class:`ActionRefused` before anything has changed. A rejected admission is an applied
    action: its event says why, and the request holds nothing.
    """

    def __init__(
        self,
        config: EngineConfig,
        store: StateStore,
        planner: Planner,
        strategy: Strategy,
        compute: Compute,
        requests: dict[str, Request],
    ) -> None:
        self.config, self.store, self.planner = config, store, planner
        self.strategy, self.compute = strategy, compute
        self.requests = requests
        self.capabilities = Capabilities(
            replayssm=config.cache.replayssm,
            numeric=config.backend != "none" and not config.model.witness,
            witness=config.backend != "none" and config.model.witness,
        )
        self._guard = Guard(store, requests)
        self._step = 0
        self._snapshotter = Snapshotter(store, self.requests)
        self._snapshot, self._changed = self._snapshotter.take()

    def apply(self, action: Action) -> tuple[Event, ...]:
        """Apply one action and return what happened."""
        self._guard.require(action)
        self._step += 1
        self.store.pool.step = self._step
        self.store.events = []
        self._perform(action)
        snapshot, self._changed = self._snapshotter.take()
        self._snapshot = replace(snapshot, measurements=self.compute.measure(snapshot, self._changed))
        return tuple(self.store.events)

    def snapshot(self) -> Snapshot:
        """Return the state after the last action."""
        return self._snapshot

    def changed(self) -> Changed:
        """Return what the last action changed."""
        return self._changed

    def enabled(self) -> Iterable[Action]:
        """Return the actions on present requests that can be applied now (admissions are the caller's)."""
        return self._guard.enabled()

    def _perform(self, action: Action) -> None:
        match action:
            case Admit():
                self._admit(action)
            case Prefill():
                self._prefill(self.requests[action.request], action.count)
            case Forward():
                self._forward([self.requests[name] for name in action.rows])
            case Checkpoint(name):
                self._publish(self.requests[name])
            case Finish(name):
                self._finish(self.requests[name])
            case Flush(name):
                self.store.fold(self.requests[name])
            case Retract(name):
                self._retract(self.requests[name])
            case Abort(name):
                self._abort(self.requests[name])
            case EvictStates(count):
                self.store.evict_states(count)
            case EvictKv(tokens):
                self.store.evict_kv(tokens)
            case Probe(tokens):
                self._probe(tokens)

    # -- the lifecycle -------------------------------------------------------------------------------

    def _admit(self, action: Admit) -> None:
        """Match and lock, then take tokens and a slot; undone if either is not to be had."""
        store = self.store
        request = Request(action.request, list(action.tokens), len(action.tokens))
        met = store.tree.match(action.tokens, limit=len(action.tokens) - 1)
        node = met.state_node
        if node is not None:
            store.pin(request, node)
        needed = len(action.tokens) - met.state_len
        if not store.take_kv(needed):
            self._reject(request, f"{needed} key-value tokens needed, {store.kv.num_free} to be had")
            return
        request.kv_tokens = needed
        slot = store.take_slot(request.id)
        if slot is None:
            self._reject(request, "no slot free and no state to evict")
            return
        if node is not None:
            store.tree.refresh(node)
        store.fill(request, slot, None if node is None else node.state)
        request.cached = met.state_len
        request.execute_to(met.state_len)
        self.requests[request.id] = request
        self._touch(request)
        store.events.append(Matched(request.id, met.kv_len, met.state_len, None if node is None else node.id))

    def _reject(self, request: Request, reason: str) -> None:
        self.store.release(request)
        self.store.events.append(AdmissionRejected(request.id, reason))

    def _prefill(self, request: Request, count: int) -> None:
        """Run a chunk ``[executed, executed + count)``; temporal and both windows then stand at its end."""
        start, end = request.executed, request.executed + count
        self.store.run_cow(request)
        self.store.fold(request)
        sampled = self._write_prefill(request, start, end)
        request.execute_to(end)
        last = end == request.prompt_len
        if last:
            request.tokens.append(sampled)
            request.phase = "decode"
        self.store.events.append(
            Prefilled(request.id, request.held_slot, start, end, sampled if last else None)
        )
        self.strategy.after_chunk(request)
        self._touch(request)

    def _write_prefill(self, request: Request, start: int, end: int) -> int:
        sampled = self.compute.prefill(request, start, end)
        self.store.pool.absorb(request.held_slot, request.records(start, end))
        return sampled

    def _forward(self, requests: Sequence[Request]) -> None:
        """One decode step: read and append, advance the cursors, fold what is due, track."""
        pool = self.store.pool
        self.store.take_kv(len(requests))
        rows = [self._row(request) for request in requests]
        sampled = self._write_decode(rows)
        pool.advance(row.slot for row in rows)
        self._fold_due(rows)
        for row, token in zip(rows, sampled, strict=True):
            request = row.request
            request.kv_tokens += 1
            request.execute_to(row.position + 1)
            request.tokens.append(token)
            self._touch(request)
            self.store.events.append(self._decoded(row, token))
        for request in requests:
            if self.planner.is_track_point(request.committed):
                self.strategy.at_track_point(request)

    def _row(self, request: Request) -> Row:
        slot, position = request.held_slot, request.committed
        return Row(request, slot, position, request.tokens[position], self.store.pool.pending(slot))

    def _write_decode(self, rows: Sequence[Row]) -> list[int]:
        sampled = self.compute.decode(rows)
        self.store.pool.append(
            (row.slot, row.request.records(row.position, row.position + 1)[0]) for row in rows
        )
        return sampled

    def _fold_due(self, rows: Sequence[Row]) -> None:
        pool = self.store.pool
        forced = {row.slot: self.planner.force_flush(row.position + 1) for row in rows}
        due = [
            slot for slot, force in forced.items() if self.planner.must_fold(pool.pending(slot), forced=force)
        ]
        for folded in pool.fold(due):
            self.store.events.append(StateFolded(*folded, forced=forced[folded.slot]))

    def _decoded(self, row: Row, token: int) -> Decoded:
        off = self.store.pool.write_pos is None
        return Decoded(
            request=row.request.id,
            slot=row.slot,
            position=row.position,
            sampled=token,
            cursor_before=None if off else row.cursor,
            cursor_after=None if off else self.store.pool.pending(row.slot),
            tracked=self.planner.is_track_point(row.position + 1),
        )

    def _publish(self, request: Request) -> None:
        self.store.publish_active(request, "checkpoint")
        self._touch(request)

    def _retract(self, request: Request) -> None:
        """Free what the request holds; its next life matches whatever the tree still has of it."""
        self.store.retracted[request.id] = self._leave(request, retracted=True)

    def _abort(self, request: Request) -> None:
        """Free what the request holds."""
        self._leave(request, retracted=False)

    def _leave(self, request: Request, *, retracted: bool) -> int:
        pending = self.store.pool.pending(request.held_slot)
        self.store.give_up_slot(request, "retracted" if retracted else "aborted")
        self.store.release(request)
        self._touch(request)
        del self.requests[request.id]
        self.store.events.append(Released(request.id, pending, retracted))
        return pending

    def _probe(self, tokens: tuple[int, ...]) -> None:
        met = self.store.tree.match(tokens, limit=len(tokens) - 1)
        node = None if met.state_node is None else met.state_node.id
        self.store.events.append(Matched(None, met.kv_len, met.state_len, node))

    def _finish(self, request: Request) -> None:
        key_len = self.strategy.finish(request)
        request.phase = "finished"
        self._touch(request)
        del self.requests[request.id]
        prompt = request.tokens[: request.prompt_len]
        self.store.events.append(
            Finished(
                request=request.id,
                committed=request.committed,
                key_len=key_len,
                dropped=request.committed - key_len,
                reply=request.reply,
                cold_reply=self.compute.cold_reply(prompt, len(request.reply)),
            )
        )

    def _touch(self, request: Request) -> None:
        self._snapshotter.touched_requests.add(request.id)
