"""Choice of backend: the plain-torch twins or the Triton kernels, never one in place of the other."""

import os
import sys
from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Backend = Literal["torch", "triton"]
Mode = Literal["torch", "triton-interpreted", "triton-compiled"]
OPERATIONS = {
    "packed_decode": "packed_decode",
    "replay_decode": "replay_decode",
    "fold": "fold",
    "conv_step": "conv",
    "conv_prefill": "conv",
}


def loaded_triton() -> Mode | None:
    """How the Triton in this process was imported, None if it was not: its own library shows which."""
    triton = sys.modules.get("triton")
    if triton is None:
        return None
    compiled = isinstance(triton.language.cdiv, triton.runtime.JITFunction)
    return "triton-compiled" if compiled else "triton-interpreted"


def _prepare_triton(device: "torch.device") -> Mode:
    """Make the Triton modules importable for `device`; raises `RuntimeError` where they cannot be.

    Triton decides once, when it is imported, whether kernels are interpreted or compiled.
    """
    want: Mode = "triton-interpreted" if device.type == "cpu" else "triton-compiled"
    if device.type not in ("cpu", "cuda"):
        raise RuntimeError(f"backend triton on {device}: need a cpu or cuda device, or backend torch")
    have = loaded_triton()
    if have is None and want == "triton-interpreted":
        os.environ["TRITON_INTERPRET"] = "1"
    elif have is None and os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "on", "yes", "y"):
        raise RuntimeError(
            f"backend triton on {device}: TRITON_INTERPRET is set; unset it, or use a cpu device"
        )
    elif have not in (None, want):
        raise RuntimeError(
            f"backend triton on {device} needs {want}, but this process has imported {have}: load the "
            f"kernels in a new process, before anything else imports Triton, or use backend torch"
        )
    return want


class Kernels:
    """The six operations of one backend; subclass it to replace one.

    `launches` counts the launches made through this object by operation and mode, for instance
    `fold[triton-interpreted]`. Tensors must be contiguous and lie on one device; arguments, results and
    errors are those of the twins in `<op>_torch.py`.
    """

    def __init__(self, mode: Mode) -> None:
        self._mode: Mode = mode
        self.launches: Counter[str] = Counter()
        suffix = "torch" if mode == "torch" else "triton"
        package = __package__ or "replaylife.kernels"
        self._run: dict[str, Any] = {
            name: getattr(import_module(f".{module}_{suffix}", package), name)
            for name, module in OPERATIONS.items()
        }
        self._run["prefill"] = import_module(".prefill_torch", package).prefill

    @classmethod
    def load(cls, backend: Backend, device: "torch.device") -> Self:
        """Load `backend` for tensors on `device`.

        Triton is interpreted on a CPU device and compiled on a CUDA one. Raises `ValueError` for an unknown
        backend and `RuntimeError` where Triton was already imported the other way; it never falls back.
        """
        if backend not in get_args(Backend):
            raise ValueError(f"backend {backend!r}, need one of {', '.join(get_args(Backend))}")
        if backend == "torch":
            return cls("torch")
        mode = _prepare_triton(device)
        kernels = cls(mode)
        have = loaded_triton()
        if have != mode:
            raise RuntimeError(
                f"backend triton on {device} needs {mode}, but its kernels were loaded as {have}"
            )
        return kernels

    @property
    def mode(self) -> Mode:
        """How the kernels run; `prefill` is plain torch in every mode."""
        return self._mode

    def packed_decode(
        self,
        q: "Tensor",
        k: "Tensor",
        v: "Tensor",
        a: "Tensor",
        b: "Tensor",
        A_log: "Tensor",
        dt_bias: "Tensor",
        temporal: "Tensor",
        slots: "Tensor",
    ) -> "Tensor":
        """Advance `temporal` by one token per row in place and return the output `[B, HV, V]`."""
        args = (q, k, v, a, b, A_log, dt_bias, temporal, slots)
        out: Tensor = self._run["packed_decode"](*args, launches=self.launches)
        return out

    def replay_decode(
        self,
        q: "Tensor",
        k: "Tensor",
        v: "Tensor",
        a: "Tensor",
        b: "Tensor",
        A_log: "Tensor",
        dt_bias: "Tensor",
        temporal: "Tensor",
        ring_d: "Tensor",
        ring_k: "Tensor",
        ring_g: "Tensor",
        write_pos: "Tensor",
        slots: "Tensor",
    ) -> "Tensor":
        """Append one record per row at `ring[write_pos]`, leave `temporal` alone and return `[B, HV, V]`."""
        args = (q, k, v, a, b, A_log, dt_bias, temporal, ring_d, ring_k, ring_g, write_pos, slots)
        out: Tensor = self._run["replay_decode"](*args, launches=self.launches)
        return out

    def fold(
        self,
        temporal: "Tensor",
        ring_d: "Tensor",
        ring_k: "Tensor",
        ring_g: "Tensor",
        slots: "Tensor",
        counts: "Tensor",
        dst: "Tensor | None" = None,
    ) -> None:
        """Set `temporal[:, dst]` to the state of `slots` after their first `counts` records; one launch."""
        self._run["fold"](temporal, ring_d, ring_k, ring_g, slots, counts, dst, launches=self.launches)

    def conv_step(self, x: "Tensor", weight: "Tensor", conv: "Tensor", slots: "Tensor") -> "Tensor":
        """Convolve one input per row, shift it into `conv` and return `[B, C]`."""
        out: Tensor = self._run["conv_step"](x, weight, conv, slots, launches=self.launches)
        return out

    def conv_prefill(
        self, x: "Tensor", weight: "Tensor", conv: "Tensor", slots: "Tensor", cu_seqlens: "Tensor"
    ) -> "Tensor":
        """Convolve packed sequences, leave their last inputs in `conv` and return `[T, C]`."""
        out: Tensor = self._run["conv_prefill"](x, weight, conv, slots, cu_seqlens, launches=self.launches)
        return out

    def prefill(
        self,
        q: "Tensor",
        k: "Tensor",
        v: "Tensor",
        a: "Tensor",
        b: "Tensor",
        A_log: "Tensor",
        dt_bias: "Tensor",
        temporal: "Tensor",
        slots: "Tensor",
        cu_seqlens: "Tensor",
    ) -> "Tensor":
        """Run packed sequences through the recurrence, leave states in `temporal`, return `[T, HV, V]`."""
        args = (q, k, v, a, b, A_log, dt_bias, temporal, slots, cu_seqlens)
        out: Tensor = self._run["prefill"](*args, launches=self.launches)
        return out
