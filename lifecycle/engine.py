"""The reference engine: the lifecycle of requests over pool, tree and compute."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from replaylife.lifecycle.actions import (
    Abort,
    Action,
    Admit,
    Checkpoint,
    Commit,
    Draft,
    EvictKv,
    EvictStates,
    Execute,
    Finish,
    Flush,
    Forward,
    Prefill,
    Probe,
    Retract,
    Schedule,
    Verify,
    Windows,
)
from replaylife.lifecycle.batch import BatchLayout
from replaylife.lifecycle.compute import Compute
from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.events import (
    AdmissionRejected,
    Event,
    Finished,
    Matched,
    Released,
)
from replaylife.lifecycle.guard import Guard
from replaylife.lifecycle.host_tier import HostTier
from replaylife.lifecycle.outside import OutsideActions
from replaylife.lifecycle.planner import Planner
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.request import Closing, Request
from replaylife.lifecycle.snapshot import Changed, Snapshot
from replaylife.lifecycle.snapshotter import Snapshotter
from replaylife.lifecycle.stepper import Stepper
from replaylife.lifecycle.store import StateStore
from replaylife.lifecycle.strategies import Strategy
from replaylife.radix import Match


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
        stepper: type[Stepper],
        layout: BatchLayout,
        tier: HostTier,
    ) -> None:
        self.config, self.store, self.planner = config, store, planner
        self.strategy, self.compute = strategy, compute
        self.requests, self.tier = requests, tier
        self.capabilities = Capabilities(
            replayssm=config.cache.replayssm,
            speculation=config.cache.replayssm,
            numeric=config.backend != "none" and not config.model.witness,
            witness=config.backend != "none" and config.model.witness,
        )
        self.stepper = stepper(store, planner, strategy, compute, layout, self._touch)
        self._guard = Guard(config.cache, store, strategy, requests, self.stepper, tier)
        self._outside = OutsideActions(store, tier, requests)
        self._action = 0
        self._snapshotter = Snapshotter(
            store,
            self.requests,
            self.stepper.in_flight,
            self.planner.grid if strategy.on_grid else None,
            tier,
        )
        self._snapshot, self._changed = self._snapshotter.take()

    def apply(self, action: Action) -> tuple[Event, ...]:
        """Apply one action and return what happened."""
        self._guard.require(action)
        self._action += 1
        self.store.pool.step = self._action
        self.store.events = []
        self._perform(action)
        snapshot, self._changed = self._snapshotter.take()
        measured = self.compute.measure(snapshot, self._changed)
        self._snapshot = replace(snapshot, measurements=measured) if measured else snapshot
        return tuple(self.store.events)

    def snapshot(self) -> Snapshot:
        """Return the state after the last action."""
        return self._snapshot

    def changed(self) -> Changed:
        """Return what the last action changed."""
        return self._changed

    def enabled(self) -> Iterable[Action]:
        """Return the actions on present requests that can be applied now.

        Admissions and verify windows are the caller's.
        """
        return self._guard.enabled()

    def _perform(self, action: Action) -> None:
        match action:
            case Admit():
                self._admit(action)
            case Prefill(name, count):
                self._step(Forward((), ((name, count),)))
            case Forward():
                self._step(action)
            case Schedule():
                self._schedule(action)
            case Verify(rows):
                self._open_windows(rows)
                self._commit()
            case Draft(rows):
                self._open_windows(rows)
            case Execute():
                self.stepper.execute()
            case Commit():
                self._commit()
            case Checkpoint(name):
                self._publish(self.requests[name])
            case Finish(name):
                self._close(self.requests[name], "finish")
            case Retract(name):
                self._close(self.requests[name], "retract")
            case Abort(name):
                self._close(self.requests[name], "abort")
            case Flush(name):
                self._flush(self.requests[name])
            case EvictStates(count):
                self.store.evict_states(count)
            case EvictKv(tokens):
                self.store.evict_kv(tokens)
            case Probe(tokens):
                self._probe(tokens)
            case _:
                self._move_copies(action)

    def _move_copies(self, action: Action) -> None:
        """Actions about checkpoints outside the pool; a request that was transferred leaves with its copy."""
        touched, left = self._outside.perform(action)
        if touched is not None:
            self._snapshotter.touched_requests.add(touched)
        if left is not None:
            self._leave(left, retracted=True)
            self.tier.queue.add(left.id)
            self._touch(left)
            self.requests.pop(left.id, None)

    # -- coming --------------------------------------------------------------------------------------

    def _admit(self, action: Admit) -> None:
        """Match and lock, then take tokens and slots; undone if any of them is not to be had."""
        store = self.store
        request = self._new_request(action)
        met = store.tree.match(action.tokens, limit=len(action.tokens) - 1)
        kept, met = self.tier.look_up(action.request, action.tokens, met)
        node = met.state_node
        if node is not None:
            store.pin(request, node)
        refused = self._provide(request, len(action.tokens) - met.state_len)
        if refused is not None:
            self._reject(request, refused)
            return
        store.events.append(Matched(request.id, met.kv_len, met.state_len, None if node is None else node.id))
        if kept is not None:
            self.tier.restore(request, kept)
        else:
            if node is not None:
                store.tree.refresh(node)
            store.fill(request, request.held_slot, None if node is None else node.state)
        self._start_at(request, met, met.state_len if kept is None else len(kept.tokens))
        self.tier.welcome(request.id)
        self.requests[request.id] = request
        self._touch(request)

    def _new_request(self, action: Admit) -> Request:
        """Return the bookkeeping of a request that is coming in."""
        return Request(action.request, list(action.tokens), len(action.tokens))

    def _provide(self, request: Request, tokens: int) -> str | None:
        """Take what a request needs; return why it cannot be had, with what was taken still in its hands."""
        if not self.store.take_kv(tokens):
            return f"{tokens} key-value tokens needed, {self.store.kv.num_free} to be had"
        request.kv_tokens = tokens
        request.slot = self.store.take_slot(request.id)
        if request.slot is None or not self.strategy.open(request):
            return "no slot free and no state to evict"
        return None

    def _start_at(self, request: Request, met: Match, start: int) -> None:
        """Set all lengths to the cached prefix, and remember a longer key-value hit as a branch point."""
        request.cached = request.folded = start
        request.schedule_to(start)
        request.execute_to(start)
        request.commit_to(start)
        branch = met.kv_len - met.kv_len % self.planner.grid
        if self.strategy.branches and branch > start:
            request.branch = branch

    def _reject(self, request: Request, reason: str) -> None:
        node = None if request.locked is None else request.locked.id
        if request.locked is not None and request.locked.state is not None:
            self.store.rejected[request.id] = request.locked.state
        self.strategy.close(request)
        if request.slot is not None:
            self.store.give_up_slot(request, "admission rejected")
        self.store.release(request)
        self.tier.queue.add(request.id)
        self.store.events.append(AdmissionRejected(request.id, reason, node))

    def _probe(self, tokens: tuple[int, ...]) -> None:
        met = self.store.tree.match(tokens, limit=len(tokens) - 1)
        node = met.host_node or met.state_node
        length, found = (0, None) if node is None else (node.key_len, node.id)
        self.store.events.append(Matched(None, met.kv_len, length, found))

    # -- running -------------------------------------------------------------------------------------

    def _schedule(self, action: Forward | Schedule) -> None:
        decodes = [self.requests[name] for name in action.rows]
        chunks = [(self.requests[name], count) for name, count in action.chunks]
        self.stepper.schedule(decodes, chunks, action.pad_to)

    def _step(self, action: Forward) -> None:
        """A whole step in one action: there is nothing else in flight."""
        self._schedule(action)
        self.stepper.execute()
        self._commit()

    def _open_windows(self, rows: Windows) -> None:
        self.stepper.open_windows([(self.requests[name], window, keep) for name, window, keep in rows])

    def _commit(self) -> None:
        for request in self.stepper.commit():
            self._end(request)

    def _flush(self, request: Request) -> None:
        self.store.fold(request, request.held_slot)
        self._touch(request)

    def _publish(self, request: Request) -> None:
        self.store.publish_active(request, "checkpoint")
        self._touch(request)

    # -- going ---------------------------------------------------------------------------------------

    def _close(self, request: Request, how: Closing) -> None:
        """End a request, at once or when its last step in flight has committed.

        Its slots are written by the steps in flight until then, so nobody may have them earlier; what those
        steps compute is past the end and is discarded.
        """
        request.closing = how
        self._touch(request)
        if not request.in_flight:
            self._end(request)

    def _end(self, request: Request) -> None:
        match request.closing:
            case "finish":
                self._finish(request)
            case "retract":
                pending = self.store.pool.pending(request.held_slot)
                self.tier.back_up(request)
                self.store.retracted[request.id] = self._leave(request, retracted=True, pending=pending)
                self.tier.queue.add(request.id)
            case _:
                self._leave(request, retracted=False)
        self._touch(request)
        self.requests.pop(request.id, None)

    def _leave(self, request: Request, *, retracted: bool, pending: int | None = None) -> int:
        """Free what the request holds; return how many records its ring held, before any fold."""
        if pending is None:
            pending = self.store.pool.pending(request.held_slot)
        self.store.give_up_slot(request, "retracted" if retracted else "aborted")
        self.strategy.close(request)
        self.store.release(request)
        self.store.events.append(Released(request.id, pending, retracted, request.committed))
        return pending

    def _finish(self, request: Request) -> None:
        key_len = self.strategy.finish(request)
        self.strategy.close(request)
        self.store.release(request)
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
