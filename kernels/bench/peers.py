"""Other projects' kernels, loaded from an installation or a path, never copied: contenders where they load.

What cannot be loaded is named with the reason (`Peers.missing`), never left out silently.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from .case import DTYPES, Case, Inputs
from .contenders import Contender

SGLANG_FOLDER = "sglang/kernels/ops/attention"
SGLANG_REPLAY = "linear/fused_recurrent_linear_replayssm"
SGLANG_PACKED = "fla/fused_recurrent"


class Peers:
    """Kernels found, and what is missing and why."""

    def __init__(self, sglang: Path | None = None, fla: Path | None = None) -> None:
        self.missing: dict[str, str] = {}
        self._sglang_replay = self._sglang_packed = self._fla = None
        try:
            self._sglang_replay = _sglang(SGLANG_REPLAY, sglang)
            self._sglang_packed = _sglang(SGLANG_PACKED, sglang)
        except Exception as error:  # an installed peer may fail to import in any way
            self.missing["sglang"] = _reason(error)
        try:
            self._fla = _flash_linear_attention(fla)
        except Exception as error:
            self.missing["flash-linear-attention"] = _reason(error)

    def contenders(self, case: Case) -> Iterator[Callable[[Case, Tensor], Contender]]:
        """Yield ways to make the peers that can run `case`."""
        if self._sglang_packed is not None:
            yield partial(SglangPacked, module=self._sglang_packed)
        if self._sglang_replay is not None:
            yield partial(SglangReplay, module=self._sglang_replay, ring_dtype=DTYPES[case.state])
            if case.state == "fp32":
                yield partial(SglangReplay, module=self._sglang_replay, ring_dtype=torch.bfloat16)
        if self._fla is not None and case.state == "fp32":
            yield partial(FlashLinearAttention, ops=self._fla)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"


def _sglang(module: str, path: Path | None) -> ModuleType:
    """Load one kernel file: from `path` (an unpacked wheel) with its two imports met, else as installed."""
    if path is None:
        return importlib.import_module(f"{SGLANG_FOLDER}/{module}".replace("/", "."))
    file = path / SGLANG_FOLDER / f"{module}.py"
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such file, need the folder of an unpacked sglang wheel")
    _stand_in()
    name = f"replaylife_peer_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file}: cannot be imported")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded  # Triton looks a kernel's module up by name
    spec.loader.exec_module(loaded)
    return loaded


def _stand_in() -> None:
    """Meet what the kernel files import from their own package, unless that package is loaded.

    Two small helpers, and "not covered" for the CUDA path of packed KDA, which needs their build.
    """
    if "sglang" in sys.modules:
        return
    from triton import language as tl

    parts = SGLANG_FOLDER.split("/")
    packages = [".".join(parts[: n + 1]) for n in range(len(parts))]
    folder = packages[-1]
    for name in (
        *packages,
        f"{folder}.fla",
        f"{folder}.fla.op",
        f"{folder}.fla.utils",
        f"{folder}.kda_packed_decode",
    ):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = []
    vars(sys.modules[f"{folder}.fla.op"])["exp"] = tl.exp
    vars(sys.modules[f"{folder}.fla.utils"])["input_guard"] = lambda fn: fn
    cuda = sys.modules[f"{folder}.kda_packed_decode"]
    vars(cuda)["covered"] = lambda *_: False
    vars(sys.modules[folder])["kda_packed_decode"] = cuda


def _flash_linear_attention(path: Path | None) -> dict[str, Callable[..., tuple[Tensor, Tensor]]]:
    if path is not None and str(path) not in sys.path:
        sys.path.insert(0, str(path))
    gdn = importlib.import_module("fla.ops.gated_delta_rule.fused_recurrent")
    kda = importlib.import_module("fla.ops.kda.fused_recurrent")
    return {"gdn": gdn.fused_recurrent_gated_delta_rule, "kda": kda.fused_recurrent_kda}


class _SglangInputs(Contender):
    """Inputs as SGLang's kernels take them, packed once and kept: packing is not what is compared."""

    def __init__(self, case: Case, states: Tensor, module: ModuleType) -> None:
        super().__init__(case, states)
        self._module = module
        self._packed: tuple[Inputs, Tensor, Tensor] | None = None

    def _pack(self, x: Inputs) -> tuple[Tensor, Tensor]:
        if self._packed is None or self._packed[0] is not x:
            rows = self.case.rows
            mixed = torch.cat([t.reshape(rows, -1) for t in (x.q, x.k, x.v)], dim=1).contiguous()
            out = torch.empty(rows, 1, self.case.HV, self.case.V, dtype=x.v.dtype, device=x.v.device)
            self._packed = (x, mixed, out)
        return self._packed[1:]


class SglangPacked(_SglangInputs):
    """SGLang's packed decode in Triton (for KDA it also has a CUDA path, which needs its own build)."""

    name = "packed (sglang)"

    def step(self, layer: int, x: Inputs, slots: Tensor, position: Tensor) -> Tensor:  # noqa: ARG002
        """Advance the state."""
        mixed, out = self._pack(x)
        common = (self.case.K**-0.5, self.states[layer], out, slots)
        if self.case.vector:
            a, dt_bias = x.a.flatten(start_dim=1), x.dt_bias.flatten()
            run = self._module.fused_recurrent_kda_packed_decode
        else:
            a, dt_bias = x.a, x.dt_bias
            run = self._module.fused_recurrent_gated_delta_rule_packed_decode
        run(mixed, a, x.b, x.A_log, dt_bias, *common, use_qk_l2norm_in_kernel=True)
        return out[:, 0]


class SglangReplay(_SglangInputs):
    """SGLang's replay decode, which flushes a full ring in the same launch.

    A pool of SGLang's allocates the ring in the dtype of the state; a ring in bf16 is measured too.
    """

    def __init__(self, case: Case, states: Tensor, module: ModuleType, ring_dtype: torch.dtype) -> None:
        super().__init__(case, states, module)
        narrow = ring_dtype != DTYPES[case.state]
        self.name = "replay (sglang, bf16 ring)" if narrow else "replay (sglang)"
        lead, device = states.shape[:2], states.device
        width = (case.K,) if case.vector else ()
        self._d = torch.zeros(*lead, case.HV, case.ring, case.V, dtype=ring_dtype, device=device)
        self._k = torch.zeros(*lead, case.H, case.ring, case.K, dtype=ring_dtype, device=device)
        self._g = torch.zeros(*lead, case.HV, case.ring, *width, device=device)
        self._force = torch.zeros(case.rows, dtype=torch.int32, device=device)

    def fill(self, generator: torch.Generator) -> None:
        """Random vectors, keys of unit length, gates of decays near one."""
        for layer in range(self.states.shape[0]):
            self._d[layer].normal_(generator=generator)
            self._k[layer].normal_(generator=generator).mul_(self.case.K**-0.5)
            self._g[layer].uniform_(-0.1, -0.001, generator=generator)

    def step(self, layer: int, x: Inputs, slots: Tensor, position: Tensor) -> Tensor:
        """Append a record, or flush."""
        mixed, out = self._pack(x)
        self._module.fused_recurrent_linear_replayssm_decode(
            mixed, x.a, x.b, x.A_log, x.dt_bias, self.case.K**-0.5, self.states[layer],
            self._d[layer], self._k[layer], self._g[layer], out, slots, position, self._force,
            use_qk_l2norm_in_kernel=True, is_kda=self.case.vector,
        )  # fmt: skip
        return out[:, 0]


class FlashLinearAttention(Contender):
    """flash-linear-attention's recurrent op for one token: states of its own, new ones returned, fp32.

    Its states are those of the batch in order, so no slots are looked up; gates are computed inside.
    """

    name = "recurrent (fla)"

    def __init__(
        self, case: Case, states: Tensor, ops: dict[str, Callable[..., tuple[Tensor, Tensor]]]
    ) -> None:
        super().__init__(case, states)
        self._run = ops[case.gate]
        self._own: dict[int, Tensor] = {}

    def step(self, layer: int, x: Inputs, slots: Tensor, position: Tensor) -> Tensor:  # noqa: ARG002
        """Advance a copy of the state."""
        if layer not in self._own:
            self._own[layer] = self.states[layer][slots.long()].transpose(-1, -2).contiguous()
        q, k, v, a, b = (t[:, None] for t in x[:5])
        gate = {"g": a, "use_gate_in_kernel": True, "A_log": x.A_log, "dt_bias": x.dt_bias.flatten()}
        out, state = self._run(
            q=q, k=k, v=v, beta=b, initial_state=self._own[layer], output_final_state=True,
            use_qk_l2norm_in_kernel=True, use_beta_sigmoid_in_kernel=True, **gate,
        )  # fmt: skip
        self._own[layer] = state
        return out[:, 0]

    def read_back(self, slots: Tensor) -> None:
        """Write the states into the pool's layout, for the comparison with float64."""
        for layer, state in self._own.items():
            self.states[layer][slots.long()] = state.transpose(-1, -2)
