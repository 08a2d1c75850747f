"""Witness runs: what the tensors say they have absorbed, against the ledger, exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import torch

from replaylife.lifecycle.model.witness import SCALE, WitnessCode
from replaylife.lifecycle.snapshot import Measurement
from replaylife.pool import CheckpointPool, MambaPool, Record
from replaylife.pool.tensors import PoolTensors


class Testimony:
    """Compares a slot's tensors with the records that the ledger says they absorbed.

    The ledger's records are encoded again from scratch, and every number must be equal: a record dropped,
    folded twice, at another position or in another head or layer differs.
    """

    __test__ = False

    def __init__(self, code: WitnessCode, pool: MambaPool, tensors: PoolTensors) -> None:
        self._code, self._pool, self._tensors = code, pool, tensors
        self._values = lru_cache(maxsize=65536)(self._encode_values)

    def measure(self, slot: int) -> list[Measurement]:
        """Return one measurement per component of ``slot``; ``error`` counts the wrong columns."""
        entry = self._pool.ledger.slots[slot]
        state = self._state(entry.temporal_log)
        name = f"slot {slot}"
        found = [self._compare(name, "temporal", state, self._tensors.temporal[:, slot], entry.temporal_log)]
        windows = [("conv", self._tensors.conv, entry.conv_log)]
        if self._tensors.conv_checkpoint is not None:
            windows.append(("conv_checkpoint", self._tensors.conv_checkpoint, entry.conv_checkpoint_log))
        for component, tensor, log in windows:
            found.append(self._compare(name, component, self._window(log), tensor[:, slot], log))
        pending = tuple(record for record in entry.ring[: self._pool.pending(slot)] if record is not None)
        if pending and self._tensors.ring_d is not None and self._tensors.ring_k is not None:
            deltas, keys = self._ring(state, pending)
            held_d = self._tensors.ring_d[:, slot, :, : len(pending)].float().cpu()
            if self._tensors.kernels.ring.keys == "raw":
                deltas, keys = self._as_raw(deltas, keys, held_d)
            held_k = self._tensors.ring_k[:, slot, :, : len(pending)]
            found.append(self._compare(name, "ring_d", deltas, held_d, pending))
            found.append(self._compare(name, "ring_k", keys, held_k, pending))
            if self._tensors.ring_g is not None:
                gates = self._tensors.ring_g[:, slot, :, : len(pending)].flatten(start_dim=2)[..., None]
                found.append(self._compare(name, "ring_g", torch.zeros(gates.shape), gates, pending))
        return found

    def measure_place(self, subject: str, places: CheckpointPool, place: int) -> list[Measurement]:
        """Return one measurement per component of a checkpoint outside the pool."""
        kept, tensors = places.places[place], places.tensors
        if tensors is None:
            return []
        state, window = self._state(kept.temporal_log), self._window(kept.conv_log)
        return [
            self._compare(subject, "temporal", state, tensors.temporal[:, place], kept.temporal_log),
            self._compare(subject, "conv", window, tensors.conv[:, place], kept.conv_log),
        ]

    def spelled(self, slot: int) -> dict[int, tuple[int | None, int]]:
        """Return what temporal of ``slot`` spells: position -> (token, times absorbed).

        The token is ``None`` where layers or heads disagree, or where the bits are those of no token.
        """
        config = self._code.config
        temporal = self._tensors.temporal[:, slot].float().cpu()  # [layers, HV, V, K]
        group = config.value_heads // config.heads
        read: dict[int, set[tuple[int | None, int]]] = {}
        for layer in range(config.layers):
            for head in range(config.value_heads):
                for column in range(config.key_dim):
                    values = temporal[layer, head, :, column]
                    if bool(values.any()):
                        position = (head // group) * config.key_dim + column
                        times = _times_absorbed(float(values[0]) / SCALE)
                        read.setdefault(position, set()).add((self._code.read(values, layer, head), times))
        return {
            position: next(iter(said)) if len(said) == 1 else (None, 0)
            for position, said in sorted(read.items())
        }

    def _compare(
        self, subject: str, component: str, expected: torch.Tensor, found: torch.Tensor, log: Sequence[Record]
    ) -> Measurement:
        wrong = (expected != found.float().cpu()).flatten(start_dim=1, end_dim=-2).any(dim=1)
        count = int(wrong.sum())
        detail = f"{count} of {wrong.numel()} columns differ from the ledger's records" if count else ""
        return Measurement("witness", subject, component, len(log), float(count), 0.0, detail)

    def _encode_values(self, layer: int, token: int) -> torch.Tensor:
        config = self._code.config
        mixed = self._code.mixed([token], [0], layer)[0]
        return mixed[2 * self._code.capacity :].view(config.value_heads, config.value_dim)

    def _deltas(self, state: torch.Tensor, record: Record) -> torch.Tensor:
        """Absorb one record into ``state`` in place; return its delta vectors ``[layers, HV, V]``."""
        config = self._code.config
        group = config.value_heads // config.heads
        key_head, column = divmod(record.position, config.key_dim)
        deltas = torch.zeros(config.layers, config.value_heads, config.value_dim)
        for layer in range(config.layers):
            values = self._values(layer, record.token)
            deltas[layer] = 0.5 * values
            served = slice(key_head * group, (key_head + 1) * group)
            deltas[layer, served] = 0.5 * (values[served] - state[layer, served, :, column])
            state[layer, served, :, column] += deltas[layer, served]
        return deltas

    def _state(self, log: Sequence[Record]) -> torch.Tensor:
        config = self._code.config
        state = torch.zeros(config.layers, config.value_heads, config.value_dim, config.key_dim)
        for record in log:
            self._deltas(state, record)
        return state

    def _window(self, log: Sequence[Record]) -> torch.Tensor:
        config = self._code.config
        width = config.conv_width - 1
        conv_dim = 2 * self._code.capacity + config.value_heads * config.value_dim
        window = torch.zeros(config.layers, conv_dim, width)
        for index, record in enumerate(log[-width:], start=width - len(log[-width:])):
            for layer in range(config.layers):
                window[layer, :, index] = self._code.mixed([record.token], [record.position], layer)[0]
        return window

    def _ring(self, state: torch.Tensor, pending: Sequence[Record]) -> tuple[torch.Tensor, torch.Tensor]:
        config = self._code.config
        live = state.clone()
        deltas = torch.stack([self._deltas(live, record) for record in pending], dim=2)
        keys = torch.zeros(config.layers, config.heads, len(pending), config.key_dim)
        for index, record in enumerate(pending):
            head, column = divmod(record.position, config.key_dim)
            keys[:, head, index, column] = 1.0
        return deltas, keys

    def _as_raw(
        self, deltas: torch.Tensor, keys: torch.Tensor, held: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Give deltas and keys the form of a ring that keeps keys as they came in, ``1 / |k|`` in the delta.

        Where a head's key is zero the norm is that of nothing at all and the record writes nothing: what is
        ``held`` there is not judged.
        """
        group = deltas.shape[1] // keys.shape[1]
        written = keys.any(dim=-1, keepdim=True).repeat_interleave(group, dim=1)
        return torch.where(written, deltas / SCALE, held), keys * SCALE


def _times_absorbed(presence: float) -> int:
    """Read how often a token was absorbed off its presence bit, a fraction of the full value.

    Absorbing halves what is missing (1/2, 3/4, 7/8); a record folded n times adds n halves (1, 3/2).
    0 where the bit says neither.
    """
    if 0 < presence < 1:
        return round(-math.log2(1 - presence))
    return round(2 * presence) if 1 <= presence < math.inf else 0
