"""The tensors of a pool, and the operations that move whole checkpoints. Imports torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from replaylife.kernels.dispatch import Kernels
from replaylife.pool.shape import DType, PoolShape

TORCH_DTYPE: dict[DType, torch.dtype] = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}


class PoolTensors:
    """Tensors of all layers and slots, zero at first.

    ``temporal [layers, slots, HV, V, K]`` state dtype; ``conv`` and ``conv_checkpoint``
    ``[layers, slots, conv_dim, W-1]`` conv dtype; ``ring_d [layers, slots, HV, L, V]`` and
    ``ring_k [layers, slots, H, L, K]`` ring and key dtype; ``ring_g [layers, slots, HV, L(, K)]`` fp32;
    ``write_pos [slots]`` int32. With ReplaySSM off the ring tensors, ``conv_checkpoint`` and ``write_pos``
    are ``None``. ``kept_inputs`` has, per slot with an open verify window of T tokens and per layer, the
    convolution's last W-1+T inputs, ``[conv_dim, W-1+T]`` in the conv dtype, oldest first.
    """

    def __init__(self, shape: PoolShape, kernels: Kernels, device: torch.device) -> None:
        if shape.ring_length is not None and kernels.ring != shape.ring_format:
            raise ValueError(
                f"kernels: loaded for {kernels.ring}, need {shape.ring_format} like the pool's shape"
            )
        self.kernels, self.device = kernels, device
        lead = (shape.layers, shape.slots)
        state, conv = TORCH_DTYPE[shape.state_dtype], TORCH_DTYPE[shape.conv_dtype]
        window = (*lead, shape.conv_dim, shape.conv_width - 1)
        self.temporal = torch.zeros(
            *lead, shape.value_heads, shape.value_dim, shape.key_dim, dtype=state, device=device
        )
        self.conv = torch.zeros(window, dtype=conv, device=device)
        self.conv_checkpoint: torch.Tensor | None = None
        self.ring_d: torch.Tensor | None = None
        self.ring_k: torch.Tensor | None = None
        self.ring_g: torch.Tensor | None = None
        self.write_pos: torch.Tensor | None = None
        self.kept_inputs: dict[int, dict[int, torch.Tensor]] = {}
        if shape.ring_length is not None:
            self._allocate_ring(shape, shape.ring_length)

    def _allocate_ring(self, shape: PoolShape, length: int) -> None:
        lead, ring = (shape.layers, shape.slots), TORCH_DTYPE[shape.ring_dtype]
        gate_width = () if shape.gate == "gdn" else (shape.key_dim,)
        self.conv_checkpoint = torch.zeros_like(self.conv)
        self.ring_d = torch.zeros(
            *lead, shape.value_heads, length, shape.value_dim, dtype=ring, device=self.device
        )
        self.ring_k = torch.zeros(
            *lead, shape.heads, length, shape.key_dim, dtype=TORCH_DTYPE[shape.key_dtype], device=self.device
        )
        self.ring_g = torch.zeros(
            *lead, shape.value_heads, length, *gate_width, dtype=torch.float32, device=self.device
        )
        self.write_pos = torch.zeros(shape.slots, dtype=torch.int32, device=self.device)

    def indices(self, values: Sequence[int]) -> torch.Tensor:
        """Return ``values`` as an int32 tensor on the pool's device."""
        return torch.tensor(values, dtype=torch.int32, device=self.device)

    def by_name(self) -> dict[str, torch.Tensor]:
        """Return the tensors that exist with dimensions ``[layers, slots, ...]`` (all but the cursors)."""
        named = {
            "temporal": self.temporal,
            "conv": self.conv,
            "conv_checkpoint": self.conv_checkpoint,
            "ring_d": self.ring_d,
            "ring_k": self.ring_k,
            "ring_g": self.ring_g,
        }
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def rings(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return ``ring_d``, ``ring_k`` and ``ring_g``; raises ``ValueError`` where there are none."""
        if self.ring_d is None or self.ring_k is None or self.ring_g is None:
            raise ValueError("the pool has no ring (ReplaySSM is off), need ring_length")
        return self.ring_d, self.ring_k, self.ring_g

    def nbytes(self) -> int:
        """Bytes allocated, all tensors and slots."""
        cursors = 0 if self.write_pos is None else self.write_pos.nbytes
        return cursors + sum(tensor.nbytes for tensor in self.by_name().values())

    def clear(self, slot: int) -> None:
        """Zero temporal, conv and conv_checkpoint of ``slot``, all layers."""
        self.temporal[:, slot] = 0
        self.conv[:, slot] = 0
        if self.conv_checkpoint is not None:
            self.conv_checkpoint[:, slot] = 0

    def copy_checkpoint(self, src: int, dst: int) -> None:
        """Copy temporal and the checkpointed window of ``src``; both windows of ``dst`` are set to it."""
        self.temporal[:, dst] = self.temporal[:, src]
        if self.conv_checkpoint is None:
            self.conv[:, dst] = self.conv[:, src]
        else:
            self.conv_checkpoint[:, dst] = self.conv_checkpoint[:, src]
            self.conv[:, dst] = self.conv_checkpoint[:, src]

    def fold(self, slots: Sequence[int], counts: Sequence[int], dst: Sequence[int]) -> None:
        """Fold the first ``counts`` records of ``slots`` into temporal of ``dst``: one launch, all layers."""
        self.kernels.fold(
            self.temporal, *self.rings(), self.indices(slots), self.indices(counts), self.indices(dst)
        )

    def save_conv(self, slot: int) -> None:
        """Set conv_checkpoint of ``slot`` to its live window; nothing to do with ReplaySSM off."""
        if self.conv_checkpoint is not None:
            self.conv_checkpoint[:, slot] = self.conv[:, slot]

    def rewind_conv(self, slot: int) -> None:
        """Set the live window of ``slot`` to conv_checkpoint; nothing to do with ReplaySSM off."""
        if self.conv_checkpoint is not None:
            self.conv[:, slot] = self.conv_checkpoint[:, slot]

    def keep_inputs(
        self, layer: int, slots: torch.Tensor, extended: torch.Tensor, lengths: torch.Tensor
    ) -> None:
        """Keep the inputs of verify windows and move the live windows to their ends.

        ``extended [B, conv_dim, W-1+T]`` as ``conv_verify`` returns it, oldest first; a row of slot -1 is
        padding.
        """
        past = self.conv.shape[-1]
        for row, (slot, length) in enumerate(zip(slots.tolist(), lengths.tolist(), strict=True)):
            if slot >= 0:
                window = extended[row, :, : past + length]
                self.kept_inputs.setdefault(slot, {})[layer] = window
                self.conv[layer, slot] = window[:, length:]

    def rewind_window(self, slot: int, position: int) -> None:
        """Set the live window of ``slot`` to what it was after ``position`` tokens of its open window."""
        for layer, window in self.kept_inputs[slot].items():
            self.conv[layer, slot] = window[:, position : position + self.conv.shape[-1]]

    def window_into(self, slot: int, position: int, dst: int) -> None:
        """Set both windows of ``dst`` to that of ``slot`` after ``position`` tokens of its open window."""
        for layer, window in self.kept_inputs[slot].items():
            self.conv[layer, dst] = window[:, position : position + self.conv.shape[-1]]
        self.save_conv(dst)

    def close_window(self, slot: int) -> None:
        """Forget the inputs kept for the open window of ``slot``."""
        self.kept_inputs.pop(slot, None)

    def set_cursor(self, slot: int, value: int) -> None:
        """Set the device cursor of ``slot``."""
        if self.write_pos is not None:
            self.write_pos[slot] = value

    def cursors(self) -> list[int] | None:
        """Read the device cursors back (a synchronisation: for snapshots and checks only)."""
        return None if self.write_pos is None else self.write_pos.tolist()


class CheckpointTensors:
    """Checkpoints outside the pool.

    ``temporal [layers, places, HV, V, K]`` and ``conv [layers, places, conv_dim, W-1]``.
    Dtypes are those of ``pool``; ``device`` is where the places are, the host's memory by default. There is
    no ring here.
    """

    def __init__(self, pool: PoolTensors, num_places: int, device: torch.device | None = None) -> None:
        self._pool = pool
        place = torch.device("cpu") if device is None else device
        self.temporal = _places_like(pool.temporal, num_places, place)
        self.conv = _places_like(pool.conv, num_places, place)

    def save(self, slot: int, place: int) -> None:
        """Copy the checkpoint of the pool's ``slot`` into ``place``, all layers."""
        pool = self._pool
        self.temporal[:, place] = pool.temporal[:, slot].to(self.temporal.device)
        window = pool.conv if pool.conv_checkpoint is None else pool.conv_checkpoint
        self.conv[:, place] = window[:, slot].to(self.conv.device)

    def load(self, place: int, slot: int) -> None:
        """Copy the checkpoint in ``place`` into the pool's ``slot``, all layers, both windows."""
        pool = self._pool
        pool.temporal[:, slot] = self.temporal[:, place].to(pool.device)
        pool.conv[:, slot] = self.conv[:, place].to(pool.device)
        if pool.conv_checkpoint is not None:
            pool.conv_checkpoint[:, slot] = pool.conv[:, slot]


def _places_like(tensor: torch.Tensor, num_places: int, device: torch.device) -> torch.Tensor:
    """Zeros of the shape of ``[layers, slots, ...]`` with so many places instead of slots."""
    layers, _, *rest = tensor.shape
    return torch.zeros(layers, num_places, *rest, dtype=tensor.dtype, device=device)
