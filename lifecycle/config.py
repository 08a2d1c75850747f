"""What an engine is built from: the model's sizes and the cache's policies."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import lcm
from typing import Literal, TypeAlias

from replaylife.pool import DType, Gate, Gates, Keys, PoolShape

FinishPolicy: TypeAlias = Literal["truncate", "fold"]
TrackPolicy: TypeAlias = Literal["snapshot", "fold-only"]
BackendName: TypeAlias = Literal["none", "torch", "triton"]


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes, dtypes and seed of the tiny hybrid network.

    ``witness`` replaces the ordinary network by one whose state tensors spell out the tokens they have
    absorbed. ``conv_dtype`` is fp32 here, and not the servers' bf16, so that the checks are exact. With the
    default ``seed`` the greedy choices of the worked example are clear (margins of at least 1e-2, both
    gates), and each of its faults changes every token of turn 2's reply.
    """

    gate: Gate = "gdn"
    layers: int = 2
    heads: int = 2
    value_heads: int = 4
    key_dim: int = 32
    value_dim: int = 16
    conv_width: int = 4
    width: int = 64
    vocab: int = 256
    state_dtype: DType = "fp32"
    conv_dtype: DType = "fp32"
    seed: int = 53
    witness: bool = False


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """Sizes and policies of the cache.

    ``ring_length`` is L, the decode steps between two folds; ``ring_dtype``, ``ring_key_dtype``,
    ``ring_keys`` and ``ring_gates`` say how its records are stored (see ``PoolShape``); ``track_interval``
    the tokens between two track points. ``finish`` says what a finishing request does with the records in
    its ring (cut the key or fold them), ``track`` whether a track point leaves a checkpoint in the tree.
    With ``overlap`` a step may be scheduled before the one before it has committed. ``graph_rows`` is the
    batch size of graph mode: static buffers of so many rows, refreshed in place, padded with slot -1;
    ``None`` runs without them. ``host_slots`` are the places for checkpoints in host memory (0: no host
    tier), ``peer_slots`` those of another engine's pool that requests can be transferred to.
    """

    strategy: str = "no_buffer"
    slots: int = 16
    kv_tokens: int = 1024
    page: int = 1
    chunk_grid: int = 1
    replayssm: bool = True
    ring_length: int = 16
    ring_dtype: DType = "fp32"
    ring_key_dtype: DType | None = None
    ring_keys: Keys = "raw"
    ring_gates: Gates = "step"
    track_interval: int = 256
    finish: FinishPolicy = "truncate"
    track: TrackPolicy = "snapshot"
    overlap: bool = False
    graph_rows: int | None = None
    host_slots: int = 0
    peer_slots: int = 0

    @property
    def grid(self) -> int:
        """Checkpoints of prefill chunks lie on multiples of this (``no_buffer`` apart)."""
        return lcm(self.page, self.chunk_grid)

    @property
    def track_point(self) -> int:
        """Lengths that are multiples of this are track points; with ``align`` every full block is one."""
        return self.grid if self.strategy == "align" else lcm(self.grid, self.track_interval)


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Everything a reference engine is built from. Plain data: picklable, comparable."""

    model: ModelConfig = field(default_factory=ModelConfig)
    cache: CacheConfig = field(default_factory=CacheConfig)
    backend: BackendName = "none"
    device: str = "cpu"

    def pool_shape(self) -> PoolShape:
        """Return the shape of the pool this configuration needs."""
        model, cache = self.model, self.cache
        return PoolShape(
            layers=model.layers,
            slots=cache.slots,
            heads=model.heads,
            value_heads=model.value_heads,
            key_dim=model.key_dim,
            value_dim=model.value_dim,
            conv_width=model.conv_width,
            ring_length=cache.ring_length if cache.replayssm else None,
            gate=model.gate,
            state_dtype=model.state_dtype,
            conv_dtype=model.conv_dtype,
            ring_dtype=cache.ring_dtype,
            ring_key_dtype=cache.ring_key_dtype,
            ring_keys=cache.ring_keys,
            ring_gates=cache.ring_gates,
        )
