"""Choice of backend: the plain-torch twins or the Triton kernels, never one in place of the other."""

import os
import sys
from collections import Counter
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from .ring import DEFAULT, REFERENCE, RingFormat

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Backend = Literal["torch", "triton"]
Mode = Literal["torch", "triton-interpreted", "triton-compiled"]
OPERATIONS = {
    "packed_decode": "packed_decode",
    "replay_decode": "replay_decode",
    "fold": "fold",
    "flush_list": "flush",
    "verify": "verify",
    "kv_replay": "kv_replay",
    "conv_step": "conv",
    "conv_prefill": "conv",
    "conv_verify": "conv",
}
TUNED = ("replay_decode", "fold")  # the operations with tiles, and a reference kernel for one ring format


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
    """The operations of one backend; subclass it to replace one.

    `launches` counts the launches made through this object by operation and mode, for instance
    `fold[triton-interpreted]`. Tensors must be contiguous and lie on one device; arguments, results and
    errors are those of the twins in `<op>_torch.py`.
    """

    def __init__(self, mode: Mode, ring: RingFormat = DEFAULT, *, tuned: bool = True) -> None:
        self._mode: Mode = mode
        self._ring = ring.checked()
        self.launches: Counter[str] = Counter()
        package = __package__ or "replaylife.kernels"
        self._run: dict[str, Any] = {}
        for name, module in OPERATIONS.items():
            suffix = "torch" if mode == "torch" else "tuned_triton" if tuned and name in TUNED else "triton"
            self._run[name] = getattr(import_module(f".{module}_{suffix}", package), name)
        self._run["prefill"] = import_module(".prefill_torch", package).prefill
        self._run["verify"] = partial(self._run["verify"], ring=ring)
        self._conv_at = import_module(".conv_torch", package).conv_at
        if mode == "torch" or tuned:
            for name in TUNED:
                self._run[name] = partial(self._run[name], ring=ring)
        elif ring != REFERENCE:
            raise ValueError(f"ring: {ring}, need {REFERENCE} for the reference kernels (tuned=False)")

    @classmethod
    def load(
        cls,
        backend: Backend,
        device: "torch.device",
        ring: RingFormat = DEFAULT,
        *,
        tuned: bool = True,
    ) -> Self:
        """Load `backend` for tensors on `device`, with records stored as `ring` says.

        Triton is interpreted on a CPU device and compiled on a CUDA one. `tuned=False` loads the reference
        configuration, which at L = 1 agrees with packed decode bit for bit and takes `ring.REFERENCE` only.
        Raises `ValueError` for an unknown backend or ring and `RuntimeError` where Triton was already
        imported the other way; it never falls back.
        """
        if backend not in get_args(Backend):
            raise ValueError(f"backend {backend!r}, need one of {', '.join(get_args(Backend))}")
        if backend == "torch":
            return cls("torch", ring, tuned=tuned)
        mode = _prepare_triton(device)
        kernels = cls(mode, ring, tuned=tuned)
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

    @property
    def ring(self) -> RingFormat:
        """How records are stored."""
        return self._ring

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
        **options: Any,
    ) -> "Tensor":
        """Append one record per row at `ring[write_pos]`, leave `temporal` alone and return `[B, HV, V]`.

        The tuned kernels take a `tile` in place of the table's.
        """
        args = (q, k, v, a, b, A_log, dt_bias, temporal, ring_d, ring_k, ring_g, write_pos, slots)
        out: Tensor = self._run["replay_decode"](*args, **options, launches=self.launches)
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
        **options: Any,
    ) -> None:
        """Set `temporal[:, dst]` to the state of `slots` after their first `counts` records; one launch.

        `rows` int32 `[1]` may say on the device how many of the rows count (not in the reference kernels).
        The tuned kernels take a `tile` in place of the table's.
        """
        self._run["fold"](
            temporal, ring_d, ring_k, ring_g, slots, counts, dst, **options, launches=self.launches
        )

    def flush_list(
        self, slots: "Tensor", cursors: "Tensor", force: "Tensor", ring: int
    ) -> "tuple[Tensor, Tensor, Tensor]":
        """Return the slots, counts and number of rows due for a fold, made on the device."""
        found: tuple[Tensor, Tensor, Tensor] = self._run["flush_list"](
            slots, cursors, force, ring, launches=self.launches
        )
        return found

    def verify(
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
        lengths: "Tensor",
    ) -> "Tensor":
        """Append the records of up to T tokens per row from `ring[write_pos]` on and return `[B, T, HV, V]`.

        Leaves `temporal` and the cursor alone; `write_pos + lengths` is at most L.
        """
        args = (q, k, v, a, b, A_log, dt_bias, temporal, ring_d, ring_k, ring_g, write_pos, slots, lengths)
        out: Tensor = self._run["verify"](*args, launches=self.launches)
        return out

    def kv_replay(
        self,
        temporal: "Tensor",
        k: "Tensor",
        v: "Tensor",
        a: "Tensor",
        b: "Tensor",
        A_log: "Tensor",
        dt_bias: "Tensor",
        slots: "Tensor",
        counts: "Tensor",
        dst: "Tensor | None" = None,
    ) -> None:
        """Set `temporal[:, dst]` to the state of `slots` after the first `counts` tokens kept as raw inputs.

        The serial alternative to `fold`: buffers `[layers, slots, T, ...]` instead of a ring, one launch.
        """
        args = (temporal, k, v, a, b, A_log, dt_bias, slots, counts, dst)
        self._run["kv_replay"](*args, launches=self.launches)

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

    def conv_verify(
        self, x: "Tensor", weight: "Tensor", conv: "Tensor", slots: "Tensor", lengths: "Tensor"
    ) -> "tuple[Tensor, Tensor]":
        """Convolve a window per row: outputs `[B, T, C]`, inputs `[B, C, W-1+T]`; `conv` stays as it is."""
        args = (x, weight, conv, slots, lengths)
        out: tuple[Tensor, Tensor] = self._run["conv_verify"](*args, launches=self.launches)
        return out

    def conv_at(self, extended: "Tensor", width: int, kept: "Tensor") -> "Tensor":
        """The W-1 inputs `[..., B, C, W-1]` after `kept` tokens of the windows that `conv_verify` returned.

        The same plain torch in every mode, and not counted as a launch.
        """
        out: Tensor = self._conv_at(extended, width, kept)
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
