"""Compute on real tensors: the forwards, and the measurements that follow each action."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch

from replaylife.lifecycle.batch import Batch, WindowBatch
from replaylife.lifecycle.compute import HashCompute, drafted
from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.events import PlaceKind
from replaylife.lifecycle.host_tier import HostTier
from replaylife.lifecycle.model.graph import GraphDecoder
from replaylife.lifecycle.model.measure import LogitMeter, StateMeter, measure_budget, tolerance_of
from replaylife.lifecycle.model.network import Network
from replaylife.lifecycle.model.oracle import Oracle
from replaylife.lifecycle.model.testimony import Testimony
from replaylife.lifecycle.model.untouched import Bystanders
from replaylife.lifecycle.model.witness import WitnessCode, WitnessNetwork
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.snapshot import Changed, Measurement, PlaceView, Snapshot
from replaylife.pool import MambaPool
from replaylife.pool.tensors import PoolTensors
from replaylife.radix import RadixTree


class NetworkCompute:
    """The ordinary network over the pool's tensors, measured against the float64 oracle.

    Measured after each action: every node whose state or slot changed (against a fold of its key), every
    running request that changed (checkpoint + ring against its executed tokens), and all new logits. After
    the first action also the pool's bytes against ``budget_bytes``, what a memory plan sets aside for it.
    """

    def __init__(
        self,
        config: EngineConfig,
        tensors: PoolTensors,
        tree: RadixTree,
        requests: dict[str, Request],
        tier: HostTier,
        budget_bytes: int,
    ) -> None:
        self._tensors, self._tree, self._requests, self._tier = tensors, tree, requests, tier
        self._changed_places = ChangedPlaces()
        self._network, self._vocab = Network(config.model, tensors), config.model.vocab
        self.oracle = Oracle(config.model)
        tolerance = tolerance_of(config)
        self._states = StateMeter(tensors, self.oracle, tolerance)
        self.logits = LogitMeter(self.oracle, tolerance)
        self._fresh: list[Measurement] = [measure_budget(budget_bytes, tensors.nbytes())]
        rows = config.cache.graph_rows
        self.graph = None if rows is None else GraphDecoder(self._network, tensors, rows)

    def prefill(self, request: Request, slot: int, start: int, end: int) -> int:
        """Run prompt tokens ``[start, end)``; return the greedy token after the last."""
        logits = self._network.prefill(request.tokens[start:end], slot)
        subject = f"request {request.id}"
        self._fresh.append(self.logits.measure(subject, request.tokens[:end], start, logits))
        return int(logits[-1].argmax())

    def decode(self, batch: Batch) -> list[int]:
        """Run one decode step; return the greedy token of each row."""
        bystanders = Bystanders(self._tensors) if batch.num_padding else None
        logits = self._run(batch)
        if bystanders is not None:
            self._fresh.extend(bystanders.changed({row.slot for row in batch.rows}))
        for row, values in zip(batch.rows, logits, strict=True):
            tokens = row.request.tokens[: row.position + 1]
            subject = f"request {row.request.id}"
            self._fresh.append(self.logits.measure(subject, tokens, row.position, values[None]))
        return [int(token) for token in logits.argmax(dim=-1)]

    def draft(self, request: Request, window: int, keep: int) -> tuple[int, ...]:
        """Draft from the oracle's greedy reply."""
        known = request.tokens[: request.executed + 1]
        reply = self.oracle.reply(known, window - 1)
        return drafted(known[-1], reply, keep, self._vocab)

    def verify(self, batch: WindowBatch) -> list[tuple[int, ...]]:
        """Run one verify step outside the captured graph, which is for one token per row."""
        tensors = self._tensors
        tokens = torch.tensor(batch.tokens, device=tensors.device)
        slots, cursors, lengths = map(tensors.indices, (batch.slots, batch.cursors, batch.lengths))
        logits = self._network.verify(tokens, slots, cursors, lengths)  # [B, T, vocab]
        sampled = []
        for row, values in zip(batch.rows, logits, strict=True):
            values = values[: len(row.tokens)]
            tokens_so_far = [*row.request.tokens[: row.position], *row.tokens]
            subject = f"request {row.request.id}"
            self._fresh.append(self.logits.measure(subject, tokens_so_far, row.position, values))
            sampled.append(tuple(int(token) for token in values.argmax(dim=-1)))
        return sampled

    def _run(self, batch: Batch) -> torch.Tensor:
        """Return the logits of the batch's real rows."""
        if self.graph is not None:
            return self.graph.decode(batch)
        tensors = self._tensors
        tokens = torch.tensor(batch.tokens, device=tensors.device)
        cursors = None if tensors.write_pos is None else tensors.indices(batch.cursors)
        logits = self._network.decode(tokens, tensors.indices(batch.slots), cursors)
        return logits[: len(batch.rows)]

    def measure(self, after: Snapshot, changed: Changed) -> tuple[Measurement, ...]:
        """Return the measurements of the action just applied."""
        found, self._fresh = self._fresh, []
        found.extend(self._measure_nodes(after, changed))
        found.extend(self._measure_requests(after, changed))
        found.extend(self._measure_places(after))
        return tuple(found)

    def cold_reply(self, prompt: Sequence[int], length: int) -> tuple[int, ...]:
        """Return the oracle's greedy reply."""
        return self.oracle.reply(prompt, length)

    def _measure_nodes(self, after: Snapshot, changed: Changed) -> Iterable[Measurement]:
        due = {
            node.id: node.state
            for node in after.nodes
            if node.state is not None and (node.id in changed.nodes or node.state in changed.slots)
        }
        for node_id, slot in due.items():
            node = self._tree.find(node_id)
            if node is not None:
                pending = len(after.slots[slot].ring)
                yield from self._states.measure(f"node {node_id}", node.key(), slot, pending)

    def _measure_requests(self, after: Snapshot, changed: Changed) -> Iterable[Measurement]:
        for view in after.requests:
            fresh = view.id in changed.requests or view.slot in changed.slots
            if fresh and view.slot is not None and view.pending_cow is None and view.executed:
                tokens = self._requests[view.id].tokens[: view.executed]
                pending = len(after.slots[view.slot].ring)
                yield from self._states.measure(f"request {view.id}", tokens, view.slot, pending)

    def _measure_places(self, after: Snapshot) -> Iterable[Measurement]:
        """Every checkpoint outside the pool that changed, against a fold of what its holder claims."""
        for where, place in self._changed_places.of(after):
            stored = self._tier.places(where).tensors
            tokens = self._claimed(place)
            if stored is not None and tokens:
                subject = f"{where} place {place.index}"
                temporal, conv = stored.temporal[:, place.index], stored.conv[:, place.index]
                yield from self._states.compare(subject, tokens, temporal, conv)

    def _claimed(self, place: PlaceView) -> tuple[int, ...]:
        """The tokens that the place's holder says it covers; none where nobody claims anything of it."""
        for owner in place.owners:
            if owner.kind == "tree":
                node = self._tree.find(int(owner.id))
                return () if node is None else node.key()
            if owner.kind == "request" and owner.id in self._tier.waiting:
                return self._tier.waiting[owner.id].tokens
        return ()


class ChangedPlaces:
    """Remembers the places outside the pool, so that each is measured once for each change."""

    def __init__(self) -> None:
        self._seen: dict[tuple[PlaceKind, int], PlaceView] = {}

    def of(self, after: Snapshot) -> Iterator[tuple[PlaceKind, PlaceView]]:
        """Yield the places that are not as they were when last asked for."""
        kinds: tuple[tuple[PlaceKind, tuple[PlaceView, ...]], ...] = (
            ("host", after.host_places),
            ("peer", after.peer_places),
        )
        for where, places in kinds:
            for place in places:
                if self._seen.get((where, place.index)) is not place:
                    self._seen[where, place.index] = place
                    yield where, place


class WitnessCompute(HashCompute):
    """The witness network over the pool's tensors, compared with the ledger; tokens are sampled by hash."""

    def __init__(self, config: EngineConfig, pool: MambaPool, tensors: PoolTensors, tier: HostTier) -> None:
        super().__init__(config.model.vocab)
        self._tensors = tensors
        self._network = WitnessNetwork(config.model, tensors)
        self.testimony = Testimony(WitnessCode(config.model), pool, tensors)
        self._tier, self._changed_places = tier, ChangedPlaces()

    def prefill(self, request: Request, slot: int, start: int, end: int) -> int:
        """Run prompt tokens ``[start, end)`` through the kernels."""
        self._network.prefill(request.tokens[start:end], start, slot)
        return super().prefill(request, slot, start, end)

    def decode(self, batch: Batch) -> list[int]:
        """Run one decode step through the kernels."""
        tensors = self._tensors
        cursors = None if tensors.write_pos is None else tensors.indices(batch.cursors)
        self._network.decode(batch.tokens, batch.positions, tensors.indices(batch.slots), cursors)
        return super().decode(batch)

    def verify(self, batch: WindowBatch) -> list[tuple[int, ...]]:
        """Run one verify step through the kernels."""
        slots, cursors, lengths = map(self._tensors.indices, (batch.slots, batch.cursors, batch.lengths))
        self._network.verify(batch.tokens, batch.positions, slots, cursors, lengths)
        return super().verify(batch)

    def measure(self, after: Snapshot, changed: Changed) -> tuple[Measurement, ...]:
        """Return what the tensors of every slot and place that was touched say, against the ledger."""
        due = set(changed.slots)
        due.update(node.state for node in after.nodes if node.state is not None and node.id in changed.nodes)
        due.update(*(request.slots for request in after.requests if request.id in changed.requests))
        found = [found for slot in sorted(due) for found in self.testimony.measure(slot)]
        for where, place in self._changed_places.of(after):
            subject = f"{where} place {place.index}"
            found += self.testimony.measure_place(subject, self._tier.places(where), place.index)
        return tuple(found)
