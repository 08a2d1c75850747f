"""One forward step through SGLang's bookkeeping: what comes before the kernels, and what after."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from replaylife.engines.sglang.kernels import Kernels, Row
from replaylife.engines.sglang.life import Life
from replaylife.engines.sglang.observer import Observer
from replaylife.engines.sglang.world import World
from replaylife.lifecycle.compute import next_token
from replaylife.lifecycle.events import (
    CheckpointCopied,
    Decoded,
    Event,
    Prefilled,
    Published,
    PublishSkipped,
    StateFolded,
)
from replaylife.pool import Fold


class Track(NamedTuple):
    """A checkpoint that a prefill chunk leaves in a track slot: the state after ``length`` tokens."""

    slot: int
    length: int


class Forward:
    """Runs prefill chunks and decode rows as one forward, in the order in which SGLang's scheduler does.

    Its allocation, copy-on-write, track planning, cursor and checkpoint code runs; what its kernels would
    write is written by :class:`Kernels`.
    """

    def __init__(self, world: World, kernels: Kernels, observer: Observer, vocab: int) -> None:
        self._world, self._kernels, self._observer, self._vocab = world, kernels, observer, vocab
        self.events: list[Event] = []

    def run(self, decodes: Sequence[Life], chunks: Sequence[tuple[Life, int]], events: list[Event]) -> None:
        """Run one forward and append what happens to ``events``."""
        self.events = events
        starts = {life.id: life.executed for life, _ in chunks}
        tracks = {life.id: self._prepare_chunk(life, count) for life, count in chunks}
        self._run_copies([life for life, _ in chunks])
        for life in decodes:
            self._prepare_decode(life)
        if decodes and chunks:
            self._run_mixed(decodes)
        elif decodes:
            self._run_decodes(decodes)
        for life, count in chunks:
            self._run_chunk(life, count, tracks[life.id])
        for life, _ in chunks:
            self._end_chunk(life, starts[life.id])

    # -- prefill -------------------------------------------------------------------------------------

    def _prepare_chunk(self, life: Life, count: int) -> Track | None:
        """Take row, slots and tokens for the next ``count`` prompt tokens (``alloc_for_extend``)."""
        world, request, theirs = self._world, life.request, self._world.theirs
        first = not request.kv.holds_kv
        if not first:
            request.init_next_round_input()
        start, end = life.executed, life.executed + count
        request.extend_end = end
        prefix = world.cache.prefix_device_indices(request) if first and start else None
        self._observer.evicting(
            "state", lambda: theirs.alloc_req_slots(world.pool, [request], world.cache), self.events
        )
        row = request.kv.req_pool_idx
        if prefix is not None:
            world.pool.write((row, slice(0, start)), prefix[:start].int())
        self._take_kv(life, start, end)
        return self._plan_track(life) if world.extra_buffer else None

    def _take_kv(self, life: Life, start: int, end: int) -> None:
        world, request, places = self._world, life.request, list[Any]()
        self._observer.evicting(
            "kv",
            lambda: places.append(world.theirs.alloc_token_slots(world.cache, end - start)),
            self.events,
        )
        world.pool.write((request.kv.req_pool_idx, slice(start, end)), places[0].int())
        world.kv_contents.update(zip(places[0].tolist(), life.tokens[start:end], strict=True))
        request.kv.kv_allocated_len = request.kv.kv_committed_len = end

    def _plan_track(self, life: Life) -> Track | None:
        world, kv = self._world, life.request.kv
        plan = world.theirs.ScheduleBatch._mamba_radix_cache_v2_req_prepare_for_extend(
            world.planner, life.request
        )
        if not plan.track_mask:
            return None
        return Track(int(kv.mamba_ping_pong_track_buffer[plan.track_position]), kv.mamba_last_track_seqlen)

    def _run_copies(self, lives: Sequence[Life]) -> None:
        """Clear fresh slots and run the copies recorded at match time, before the kernels."""
        world, batch = self._world, SimpleNamespace()
        copies = [(life, life.pending_cow()) for life in lives]
        world.theirs.ScheduleBatch._collect_deferred_mamba_cow_and_clear(
            batch, [life.request for life in lives]
        )
        if batch.mamba_clear_indices is not None:
            world.mamba.clear_slots(batch.mamba_clear_indices)
        if batch.mamba_cow_src_indices is not None:
            for life, copy in copies:
                if copy is not None:
                    life.copies += 1
                    self._copied(life, *copy, "cow")
            world.pool.copy_mamba_state(batch.mamba_cow_src_indices, batch.mamba_cow_dst_indices)

    def _copied(self, life: Life, src: int, dst: int, purpose: str) -> None:
        pending, length = self._pending(src), self._kernels.temporal(src).length
        self.events.append(CheckpointCopied(src, dst, pending, length, purpose, life.id))

    def _pending(self, slot: int) -> int:
        cursors = self._world.mamba.replayssm_write_pos
        return 0 if cursors is None else int(cursors[slot])

    def _run_chunk(self, life: Life, count: int, track: Track | None) -> None:
        start, slot = life.executed, life.held_slot
        tokens = tuple(life.tokens[start : start + count])
        if track is not None:
            self._kernels.snapshot(slot, track.slot, tokens[: track.length - start])
            self.events.append(CheckpointCopied(slot, track.slot, 0, track.length, "publish", life.id))
        self._kernels.extend(Row(life.number, slot, start, tokens), initial=start > 0)
        life.execute_to(start + count)

    def _end_chunk(self, life: Life, start: int) -> None:
        """Sample after the prompt's last token, then publish (``checkpoint_kv_cache``)."""
        sampled = self._sample(life) if life.executed == life.prompt_len else None
        self.events.append(Prefilled(life.id, life.held_slot, start, life.executed, sampled))
        claimed = life.request.kv.mamba_last_track_seqlen if self._world.extra_buffer else life.executed
        self.publishing(
            life,
            None if claimed is None else life.fold(claimed),
            "chunk",
            lambda: self._world.theirs.checkpoint_kv_cache(life.request, self._world.cache),
        )

    def _sample(self, life: Life) -> int:
        token = next_token(life.absorbed, self._vocab)
        life.tokens.append(token)
        life.request.output_ids.append(token)
        return token

    # -- decode --------------------------------------------------------------------------------------

    def _prepare_decode(self, life: Life) -> None:
        """Take a key-value token (``prepare_for_decode``)."""
        self._take_kv(life, life.executed, life.executed + 1)
        life.request.decode_batch_idx += 1

    def _run_decodes(self, lives: Sequence[Life]) -> None:
        """A decode forward: SGLang's cursor code, the kernels, then its track code."""
        rows = [
            Row(life.number, life.held_slot, life.executed, (life.tokens[life.executed],)) for life in lives
        ]
        before = [self._pending(row.slot) for row in rows]
        metadata = self._world.backend._forward_metadata(self._batch(lives, "DECODE"))
        cursors = None if metadata.replayssm_write_pos is None else metadata.replayssm_write_pos.tolist()
        flush = None if metadata.replayssm_force_flush is None else metadata.replayssm_force_flush.tolist()
        folded = self._kernels.decode(rows, cursors, flush)
        for index, life in enumerate(lives):
            life.execute_to(life.executed + 1)
            if folded[index]:
                forced = bool(flush is not None and flush[index])
                self.events.append(StateFolded(life.held_slot, folded[index], life.executed, forced))
            self._decoded(life, rows[index], before[index])
        if self._world.extra_buffer:
            for life in lives:
                self._track(life)

    def _run_mixed(self, lives: Sequence[Life]) -> None:
        """Decode rows in a forward with prefill chunks (``mix_with_running``): extend rows of one token.

        The forward's mode is MIXED. SGLang's metadata code is run in that mode, so that what it does to the
        cursors is its own.
        """
        rows = [
            Row(life.number, life.held_slot, life.executed, (life.tokens[life.executed],)) for life in lives
        ]
        before = [self._pending(row.slot) for row in rows]
        self._world.backend._forward_metadata(self._batch(lives, "MIXED"))
        for life, row, cursor in zip(lives, rows, before, strict=True):
            life.request.refresh_fill_ids()
            life.request.extend_end = life.executed + 1
            self._kernels.extend(row, initial=True)
            life.execute_to(life.executed + 1)
            self._decoded(life, row, cursor)

    def _batch(self, lives: Sequence[Life], mode: str) -> SimpleNamespace:
        """What ``_forward_metadata`` reads of a batch."""
        import torch

        kind, device = self._world.theirs.ForwardMode[mode], self._world.device
        ones = torch.ones(len(lives), dtype=torch.int64, device=device)
        lengths = torch.tensor([life.executed + 1 for life in lives])
        return SimpleNamespace(
            batch_size=len(lives),
            req_pool_indices=torch.tensor([life.request.kv.req_pool_idx for life in lives], device=device),
            seq_lens_cpu=lengths,
            forward_mode=kind,
            logical_forward_mode=kind,
            mamba_track_indices=None,
            mamba_track_mask=None,
            mamba_prefill_track_mask_cpu=None,
            mamba_track_seqlens_cpu=None,
            extend_start_loc=torch.arange(len(lives), device=device),
            extend_seq_lens=ones,
            extend_seq_lens_cpu=[1] * len(lives),
            extend_prefix_lens_cpu=(lengths - 1).tolist(),
            tbo_parent_token_range=None,
        )

    def _decoded(self, life: Life, row: Row, before: int) -> None:
        off = self._world.mamba.replayssm_write_pos is None
        self.events.append(
            Decoded(
                request=life.id,
                slot=row.slot,
                position=row.position,
                sampled=self._sample(life),
                cursor_before=None if off else before,
                cursor_after=None if off else self._pending(row.slot),
                tracked=life.executed % self._world.track_interval == 0,
            )
        )

    def _track(self, life: Life) -> None:
        """At a track point the kernel copies into the next track slot, and SGLang's code stamps it."""
        import torch

        world, kv = self._world, life.request.kv
        batch = SimpleNamespace(
            reqs=[life.request],
            req_to_token_pool=world.pool,
            req_pool_indices=torch.tensor([kv.req_pool_idx], device=world.device),
            spec_algorithm=SimpleNamespace(is_none=lambda: True),
            mamba_decode_batch_idx_cpu=[life.request.decode_batch_idx],
        )
        world.theirs.set_mamba_track_indices_from_reqs(batch)
        if life.executed % world.theirs.mamba_track_grid(world.cache.page_size):
            return
        destination = int(batch.mamba_track_indices[0])
        self._copied(life, life.held_slot, destination, "publish")
        self._kernels.track(life.held_slot, destination)
        kv.mamba_last_track_idx = batch.mamba_track_buffer_indices[0]  # _handle_finish_state_updated_req
        kv.mamba_prev_track_seqlen = kv.mamba_last_track_seqlen
        kv.mamba_last_track_seqlen = kv.kv_committed_len
        world.processor._mamba_prefix_cache_update(life.request, batch, None, 0, known_boundary=True)

    # -- publishing ----------------------------------------------------------------------------------

    def publishing(self, life: Life, claimed: Fold | None, purpose: str, call: Any) -> None:
        """Run ``call``, which may give the tree a state of ``life``; say what it gave, took away, or kept.

        ``claimed`` are the tokens that it is to publish, as the bookkeeping says; ``None`` for nothing.
        """
        before = {(node.id, node.state) for node in self._observer.tree.nodes if node.state is not None}
        slot = life.slot
        self._observer.evicting("state", call, self.events)
        published = False
        for node in self._observer.tree.nodes:
            if node.state is None or (node.id, node.state) in before:
                continue
            if purpose == "chunk" and not self._world.extra_buffer and slot is not None:
                self._copied(life, slot, node.state, "publish")
            self.events.append(Published(life.id, node.id, node.state, node.key.length, purpose))
            self._observer.used(node.id)
            published = True
        if published:
            return
        known = next((n for n in self._observer.tree.nodes if n.key == claimed and n.state is not None), None)
        if known is not None:
            self._observer.used(known.id)
        reason = "nothing to publish" if known is None else "the tree already has a state for this key"
        length = 0 if claimed is None else claimed.length
        self.events.append(PublishSkipped(life.id, None if known is None else known.id, length, reason))
