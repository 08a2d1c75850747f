"""Binding of tensor dimensions to named sizes, with errors that say what a tensor has and what it needs."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

MAX_RING = 64


class DecodeSizes(NamedTuple):
    """Sizes of one decode step: `ring` is 0 where no ring takes part."""

    rows: int
    key_heads: int
    heads: int
    K: int
    V: int
    ring: int
    vector_gate: bool


class FoldSizes(NamedTuple):
    """Sizes of one fold over all layers."""

    layers: int
    rows: int
    key_heads: int
    heads: int
    K: int
    V: int
    ring: int
    vector_gate: bool


class ConvSizes(NamedTuple):
    """Sizes of a convolution call; `rows` counts sequences in a prefill and tokens in a step."""

    rows: int
    tokens: int
    channels: int
    width: int


@dataclass(slots=True)
class Call:
    """The tensors of one call, checked one after another; the first that names a size fixes it."""

    device: torch.device
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def on_cpu(self) -> bool:
        """Whether values can be looked at without synchronising with a device."""
        return self.device.type == "cpu"

    def bind(
        self, name: str, tensor: Tensor, dims: str, dtypes: tuple[torch.dtype, ...], why: str = ""
    ) -> None:
        """Check `tensor` against `dims` ("B HV K"; "W-1" for one less than W) and bind sizes not seen yet."""
        names = dims.split()
        need = [self._size(dim) for dim in names]
        if tensor.ndim != len(names) or any(
            size is not None and size != have for size, have in zip(need, tensor.shape, strict=True)
        ):
            shown = ", ".join(
                dim if size is None else str(size) for dim, size in zip(names, need, strict=True)
            )
            reason = f" {why}" if why else ""
            raise ValueError(
                f"{name}: shape {tuple(tensor.shape)}, need ({shown}){reason} ({', '.join(names)})"
            )
        if tensor.dtype not in dtypes:
            wanted = " or ".join(str(dtype) for dtype in dtypes)
            raise ValueError(f"{name}: dtype {tensor.dtype}, need {wanted}")
        if tensor.device != self.device:
            raise ValueError(f"{name}: on {tensor.device}, need {self.device} like the other tensors")
        if not tensor.is_contiguous():
            raise ValueError(f"{name}: strides {tensor.stride()}, need a contiguous tensor")
        self.sizes.update(zip(names, tensor.shape, strict=True))

    def _size(self, dim: str) -> int | None:
        if dim in self.sizes:
            return self.sizes[dim]
        base, _, less = dim.partition("-")
        return self.sizes[base] - int(less) if less and base in self.sizes else None

    def require(self, ok: bool, name: str, has: object, need: str) -> None:
        """Raise `ValueError` naming the tensor unless `ok`."""
        if not ok:
            raise ValueError(f"{name}: {has}, need {need}")

    def head_groups(self) -> None:
        """Value heads are divided evenly over key heads."""
        heads, key_heads = self.sizes["HV"], self.sizes["H"]
        ok = key_heads > 0 and heads % key_heads == 0
        self.require(
            ok, "v", f"{heads} value heads over {key_heads} key heads", "a multiple of the key heads"
        )

    def ring_length(self) -> None:
        """The ring holds 1 to 64 records."""
        ring = self.sizes["L"]
        self.require(1 <= ring <= MAX_RING, "ring_d", f"ring of {ring} records", f"1 to {MAX_RING}")
