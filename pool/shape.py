"""The sizes of a pool, and what they cost in bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from replaylife.kernels.ring import Gates, Keys, RingFormat

Gate = Literal["gdn", "kda"]
DType = Literal["fp32", "bf16", "fp16"]

BYTES: dict[DType, int] = {"fp32": 4, "bf16": 2, "fp16": 2}


@dataclass(frozen=True, slots=True)
class PoolShape:
    """Sizes and dtypes of the pool's tensors.

    ``heads`` key heads serve ``value_heads`` value heads. ``ring_length`` is L, or ``None`` with ReplaySSM
    off: then ring, cursor and conv checkpoint do not exist. Gates are always fp32. ``ring_key_dtype`` is that
    of ``ring_k``, ``None`` for ``ring_dtype``; ``ring_keys`` and ``ring_gates`` say what a record holds (see
    ``RingFormat``). Raises ``ValueError`` naming the size, what it is and what it must be.
    """

    layers: int
    slots: int
    heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_width: int
    ring_length: int | None
    gate: Gate = "gdn"
    state_dtype: DType = "fp32"
    conv_dtype: DType = "bf16"
    ring_dtype: DType = "fp32"
    ring_key_dtype: DType | None = None
    ring_keys: Keys = "raw"
    ring_gates: Gates = "step"

    def __post_init__(self) -> None:
        for name in ("layers", "heads", "value_heads", "key_dim", "value_dim"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)}, need at least 1")
        if self.value_heads % self.heads:
            raise ValueError(
                f"value_heads: {self.value_heads}, need a multiple of heads ({self.heads}): "
                "each key head serves the same number of value heads"
            )
        if self.conv_width < 2:
            raise ValueError(f"conv_width: {self.conv_width}, need at least 2 (a window of W-1 inputs)")
        if self.slots < 2:
            raise ValueError(f"slots: {self.slots}, need at least 2 (slot 0 is reserved)")
        if self.gate not in get_args(Gate):
            raise ValueError(f"gate: {self.gate!r}, need one of {', '.join(get_args(Gate))}")
        for name in ("state_dtype", "conv_dtype", "ring_dtype", "ring_key_dtype"):
            if getattr(self, name) not in (*BYTES, *((None,) if name == "ring_key_dtype" else ())):
                raise ValueError(f"{name}: {getattr(self, name)!r}, need one of {', '.join(BYTES)}")
        if self.ring_length is not None and not 1 <= self.ring_length <= 64:
            raise ValueError(f"ring_length: {self.ring_length}, need 1 to 64")
        self.ring_format.checked()

    @property
    def ring_format(self) -> RingFormat:
        """What a record of the ring holds."""
        return RingFormat(self.ring_keys, self.ring_gates)

    @property
    def key_dtype(self) -> DType:
        """The dtype of ``ring_k``."""
        return self.ring_key_dtype or self.ring_dtype

    @property
    def conv_dim(self) -> int:
        """Channels of the short convolution: q, k and v of all heads."""
        return 2 * self.heads * self.key_dim + self.value_heads * self.value_dim

    def component_bytes(self) -> dict[str, int]:
        """Bytes of each tensor for one slot, all layers; absent tensors are left out."""
        state, conv, ring = BYTES[self.state_dtype], BYTES[self.conv_dtype], BYTES[self.ring_dtype]
        window = self.layers * self.conv_dim * (self.conv_width - 1) * conv
        sizes = {
            "temporal": self.layers * self.value_heads * self.value_dim * self.key_dim * state,
            "conv": window,
        }
        if self.ring_length is not None:
            records = self.layers * self.ring_length
            gate_width = 1 if self.gate == "gdn" else self.key_dim
            sizes |= {
                "conv_checkpoint": window,
                "ring_d": records * self.value_heads * self.value_dim * ring,
                "ring_k": records * self.heads * self.key_dim * BYTES[self.key_dtype],
                "ring_g": records * self.value_heads * gate_width * 4,
                "write_pos": 4,
            }
        return sizes

    def slot_bytes(self) -> int:
        """Bytes of one slot over all layers, ring included."""
        return sum(self.component_bytes().values())
