"""SGLang's cache under our protocol: actions go in, events and plain snapshots come out."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence

from replaylife.engines.sglang.forward import Forward
from replaylife.engines.sglang.kernels import Kernels
from replaylife.engines.sglang.life import Life
from replaylife.engines.sglang.look import TreeNode, TreeReader
from replaylife.engines.sglang.observer import Observer
from replaylife.engines.sglang.world import World
from replaylife.lifecycle import actions
from replaylife.lifecycle.actions import Action
from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.events import (
    AdmissionRejected,
    Event,
    Finished,
    Matched,
    Released,
    StepCommitted,
    StepScheduled,
)
from replaylife.lifecycle.protocol import ActionRefused, CannotExpress, Capabilities
from replaylife.lifecycle.snapshot import Changed, Snapshot

MAX_NEW_TOKENS = 1 << 20


class SglangEngine:
    """Drives SGLang's tree, pools, requests and cursor code.

    An admission that SGLang's scheduler would not try, for lack of slots or key-value tokens, is rejected
    before anything is touched; what is raised by SGLang's own code is a breakdown.
    """

    def __init__(
        self, config: EngineConfig, world: World, reader: Callable[[World, Mapping[str, Life]], TreeReader]
    ) -> None:
        self.config, self.world = config, world
        self.capabilities = Capabilities(replayssm=config.cache.replayssm, numeric=False, witness=False)
        self._lives: dict[str, Life] = {}
        self._retracted: dict[str, Life] = {}
        self._names: list[str] = []
        kernels = Kernels(world.mamba, self._names)
        self.observer = Observer(world, kernels, reader(world, self._lives), self._lives)
        self._forward = Forward(world, kernels, self.observer, config.model.vocab)
        self._events: list[Event] = []
        self._step = 0
        self._snapshot = self.observer.snapshot()

    def apply(self, action: Action) -> tuple[Event, ...]:
        """Apply one action and return what happened.

        Raises :class:`ActionRefused`, and changes nothing, when it is not enabled; :class:`CannotExpress`
        for an action that SGLang does not have; ``RuntimeError`` where SGLang's own code breaks down.
        """
        self.world.enter()
        self._require(action)
        before, self._events = self._snapshot, []
        self.observer.step += 1
        try:
            self._perform(action)
        except (AssertionError, LookupError, AttributeError, TypeError, ValueError) as error:
            raise RuntimeError(f"SGLang raised {type(error).__name__}: {error}") from error
        self._events += self.observer.moved(before, self._events)
        self._snapshot = self.observer.snapshot()
        return tuple(self._events)

    def snapshot(self) -> Snapshot:
        """Return the state after the last action."""
        return self._snapshot

    def changed(self) -> Changed | None:
        """Return ``None``: every view is made anew, so the invariants look at all."""
        return None

    def enabled(self) -> Iterable[Action]:
        """Return nothing: the reference engine, run alongside, says what can be done."""
        return ()

    # -- may it be done ------------------------------------------------------------------------------

    def _require(self, action: Action) -> None:
        match action:
            case actions.Admit(name, tokens):
                _refuse_if(name in self._lives, action, "a request of this name is running; finish it")
                _refuse_if(not tokens, action, "the prompt is empty, need at least one token")
            case actions.Probe(tokens):
                _refuse_if(not tokens, action, "the prompt is empty, need at least one token")
            case actions.Prefill(name, count):
                self._require_chunk(action, name, count)
            case actions.Forward(rows, chunks, pad_to):
                if pad_to is not None:
                    raise CannotExpress("padded rows: they belong to its CUDA graphs, which need a GPU")
                for name, count in chunks:
                    self._require_chunk(action, name, count)
                for name in rows:
                    self._require_decoding(action, name)
            case actions.Finish(name):
                self._require_decoding(action, name)
            case actions.Retract(name) | actions.Abort(name):
                self._require_running(action, name)
            case actions.EvictStates(count) | actions.EvictKv(count):
                _refuse_if(count < 1, action, "need at least 1")
            case actions.Flush() | actions.Checkpoint():
                raise CannotExpress(
                    f"{type(action).__name__.lower()}: it has no such call for a decoding request"
                )
            case actions.Schedule() | actions.Execute() | actions.Commit():
                raise CannotExpress("overlapped steps: this adapter plays whole steps")
            case actions.Verify() | actions.Draft():
                raise CannotExpress("verify windows: SGLang plans them in its speculative workers")
            case actions.EndSession() | actions.Cancel():
                raise CannotExpress("sessions and the waiting queue: they belong to SGLang's scheduler")
            case _:
                raise CannotExpress(f"{type(action).__name__}: copies to other memory are not driven")

    def _require_running(self, action: Action, name: str) -> Life:
        if name not in self._lives:
            running = ", ".join(self._lives) or "none"
            raise ActionRefused(f"{action}: no such request is running (running: {running})")
        return self._lives[name]

    def _require_chunk(self, action: Action, name: str, count: int) -> None:
        life = self._require_running(action, name)
        left = life.prompt_len - life.executed
        why = f"{left} prompt tokens of {name} are left, need a chunk of 1 to {left}"
        _refuse_if(not 1 <= count <= left, action, why)

    def _require_decoding(self, action: Action, name: str) -> None:
        life = self._require_running(action, name)
        left = life.prompt_len - life.executed
        _refuse_if(left > 0, action, f"{left} prompt tokens of {name} are not prefilled")

    # -- doing it ------------------------------------------------------------------------------------

    def _perform(self, action: Action) -> None:
        match action:
            case actions.Admit(name, tokens):
                self._admit(name, tokens)
            case actions.Prefill(name, count):
                self._run_step((), ((name, count),))
            case actions.Forward(rows, chunks):
                self._run_step(rows, chunks)
            case actions.Finish(name):
                self._finish(self._lives[name])
            case actions.Retract(name):
                self._leave(self._lives[name], retracted=True)
            case actions.Abort(name):
                self._leave(self._lives[name], retracted=False)
            case actions.EvictStates(count):
                self._evict("state", mamba_num=count)
            case actions.EvictKv(count):
                self._evict("kv", num_tokens=count)
            case actions.Probe(tokens):
                kv_len, node = self._match(tokens)
                self._events.append(Matched(None, kv_len, *_state_of(node)))

    def _match(self, tokens: Sequence[int]) -> tuple[int, TreeNode | None]:
        """Return what a prompt would reuse, without asking SGLang, whose match would count as a use."""
        kv_len, path = self.observer.tree.walk(tokens[:-1])
        return kv_len, next((node for node in reversed(path) if node.state is not None), None)

    def _admit(self, name: str, tokens: tuple[int, ...]) -> None:
        """Match, record the copy-on-write and lock: ``init_next_round_input``, then the admission's lock."""
        kv_len, node = self._match(tokens)
        refused = self._no_room(tokens, node)
        if refused is not None:
            self._events.append(AdmissionRejected(name, refused, None if node is None else node.id))
            return
        life = self._enter(name, tokens)
        cache = self.world.cache
        self.observer.evicting("state", lambda: life.request.init_next_round_input(cache), self._events)
        life.request.lock = cache.lock(life.request.last_node)
        life.start_at(life.request.prefix_len)
        self._lives[name] = life
        if node is not None:
            self.observer.used(node.id)
        self._events.append(Matched(name, kv_len, *_state_of(node)))

    def _enter(self, name: str, tokens: tuple[int, ...]) -> Life:
        """Return a life for the request: a fresh one, or that of a request that was retracted before."""
        back = self._retracted.pop(name, None)
        if back is not None and tuple(back.tokens) == tokens:
            return Life(name, back.number, back.request, list(tokens), len(tokens))
        self._names.append(name)
        theirs = self.world.theirs
        request = theirs.Req(
            rid=name,
            origin_input_text="",
            origin_input_ids=array("q", tokens),
            sampling_params=theirs.SamplingParams(temperature=0, max_new_tokens=MAX_NEW_TOKENS),
        )
        return Life(name, len(self._names), request, list(tokens), len(tokens))

    def _no_room(self, tokens: Sequence[int], node: TreeNode | None) -> str | None:
        """Say what the request could not have: slots and tokens, evictable ones included.

        Requests that are admitted and not yet run have been promised their slots and their prompts' rest.
        """
        world, waiting = self.world, [life for life in self._lives.values() if not life.request.kv.holds_kv]
        each = 1 + world.pool.mamba_initial_tracking_slots
        promised = sum(each - (life.slot is not None) for life in waiting)
        pinned = int(node is not None and node.state_lock == 0)
        slots = int(world.pool.mamba_allocator.available_size() + world.cache.mamba_evictable_size())
        if slots - promised - pinned < each:
            return "no slot free and no state to evict"
        path = {} if node is None else {n.id for n in self.observer.tree.walk(tokens[: node.key.length])[1]}
        evictable = sum(len(n.edge) for n in self.observer.tree.nodes if n.kv_lock == 0 and n.id not in path)
        due = sum(life.prompt_len - life.executed for life in self._lives.values())
        needed = len(tokens) - (0 if node is None else node.key.length)
        to_be_had = int(world.kv.available_size()) + evictable - due
        if to_be_had < needed:
            return f"{needed} key-value tokens needed, {to_be_had} to be had"
        return None

    def _run_step(self, rows: Sequence[str], chunks: Sequence[tuple[str, int]]) -> None:
        lives = [self._lives[name] for name in rows]
        spans = [(life.id, life.executed, life.executed + 1) for life in lives]
        spans += [(name, self._lives[name].executed, self._lives[name].executed + n) for name, n in chunks]
        self._step += 1
        self._events.append(StepScheduled(self._step, tuple(spans)))
        self._forward.run(lives, [(self._lives[name], count) for name, count in chunks], self._events)
        self._events.append(StepCommitted(self._step, ()))

    def _finish(self, life: Life) -> None:
        """The client has its last token: ``release_kv_cache`` with a checkpoint."""
        request, theirs = life.request, self.world.theirs
        request.finished_reason = theirs.FINISH_LENGTH(len(request.output_ids))
        request.finished_len = len(request.output_ids)
        key_len = self._donation(life)
        self._forward.events = self._events
        self._forward.publishing(
            life,
            life.fold(key_len),
            "finish",
            lambda: theirs.release_kv_cache(request, self.world.cache, checkpoint=True),
        )
        del self._lives[life.id]
        dropped = life.executed - key_len
        self._events.append(Finished(life.id, life.executed, key_len, dropped, life.reply, None))

    def _donation(self, life: Life) -> int:
        """Return the length that SGLang will donate, read off its bookkeeping before it does."""
        kv, cursors = life.request.kv, self.world.mamba.replayssm_write_pos
        if not self.world.extra_buffer:
            return life.executed - (0 if cursors is None else int(cursors[life.held_slot]))
        lengths = [kv.mamba_last_track_seqlen or 0, kv.mamba_prev_track_seqlen or 0]
        return max((length for length in lengths if length <= life.executed), default=0)

    def _leave(self, life: Life, *, retracted: bool) -> None:
        """Give everything up without a checkpoint: ``release_req``, or ``release_kv_cache`` for an abort."""
        request, world, slot = life.request, self.world, life.slot
        cursors = world.mamba.replayssm_write_pos
        pending = 0 if cursors is None or slot is None else int(cursors[slot])
        if (
            not request.kv.holds_kv
        ):  # admitted and not run: in SGLang it would still be waiting, without a lock
            world.cache.unlock(request.lock)
            request.lock = None
        if retracted:
            world.theirs.release_req(
                req=request,
                remaing_req_count=0,
                req_to_token_pool=world.pool,
                token_to_kv_pool_allocator=world.kv,
                tree_cache=world.cache,
                hisparse_coordinator=None,
            )
            self._retracted[life.id] = life
        else:
            world.theirs.release_kv_cache(request, world.cache, checkpoint=False)
        del self._lives[life.id]
        self._events.append(Released(life.id, pending, retracted, life.executed))

    def _evict(self, purpose: str, num_tokens: int = 0, mamba_num: int = 0) -> None:
        params = self.world.theirs.EvictParams(num_tokens=num_tokens, mamba_num=mamba_num)
        self.observer.evicting(purpose, lambda: self.world.cache.evict(params), self._events)


def _state_of(node: TreeNode | None) -> tuple[int, int | None]:
    return (0, None) if node is None else (node.key.length, node.id)


def _refuse_if(refused: bool, action: Action, why: str) -> None:
    if refused:
        raise ActionRefused(f"{action}: {why}")
