"""The adapters ``sglang`` and ``sglang-rust``: SGLang's cache with its Python and with its Rust tree core."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from replaylife.engines.registry import EngineUnavailable
from replaylife.engines.sglang import classes
from replaylife.lifecycle.actions import Admit, Prefill
from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.protocol import CannotExpress

if TYPE_CHECKING:
    from replaylife.engines.sglang.engine import SglangEngine


@dataclass(frozen=True, slots=True)
class SglangAdapter:
    """Builds engines on SGLang's own classes."""

    core: str

    @property
    def title(self) -> str:
        """Name the installed release and the tree core. Raises ``EngineUnavailable`` without one."""
        named = f"{classes.title()}, {self.core} tree core"
        self._require_usable()
        return named

    def inexpressible(self, config: EngineConfig) -> str | None:
        """Say what of ``config`` SGLang, or this adapter, does not have."""
        cache = config.cache
        if cache.strategy not in ("no_buffer", "extra_buffer"):
            return f"strategy {cache.strategy}: the adapter drives no_buffer and extra_buffer"
        if cache.page != 1:
            return "page: the adapter drives SGLang's token allocator, pages of 1"
        if cache.overlap:
            return "overlap: the adapter plays whole steps"
        if cache.graph_rows is not None:
            return "graph mode: SGLang captures its graphs on a GPU only"
        if cache.host_slots or cache.peer_slots:
            return "host tier: SGLang moves states by its cache controllers, which the adapter does not drive"
        if cache.finish == "fold" and cache.replayssm and cache.strategy == "no_buffer":
            return "finish fold: SGLang cuts the key to the last fold (finish: truncate)"
        return None

    def build(self, config: EngineConfig) -> SglangEngine:
        """Return a fresh engine; see :class:`replaylife.engines.registry.Adapter`."""
        reason = self.inexpressible(config)
        if reason is not None:
            raise CannotExpress(reason)
        self._require_usable()
        return self._build(config)

    def _require_usable(self) -> None:
        trouble = rust_trouble() if self.core == "rust" else None
        if trouble is not None:
            raise EngineUnavailable(trouble)

    def _build(self, config: EngineConfig) -> SglangEngine:
        classes.load()
        from replaylife.engines.sglang.engine import SglangEngine
        from replaylife.engines.sglang.look import PythonTree
        from replaylife.engines.sglang.look_rust import RustTree
        from replaylife.engines.sglang.world import World

        world = World(config, self.core)
        if world.core != self.core:
            raise EngineUnavailable(
                f"SGLang has no {self.core} tree core here, and takes the {world.core} one"
            )
        return SglangEngine(config, world, PythonTree if self.core == "python" else RustTree)


@cache
def rust_trouble() -> str | None:
    """Say why the Rust tree core cannot be driven here, ``None`` if it can.

    It is compiled for one release of torch and reads tensors through that release's numbers for dtypes and
    the like. With another it may refuse every tensor, which is no finding about a cache.
    """
    engine = RUST._build(EngineConfig())
    try:
        engine.apply(Admit("probe", (1, 2)))
        engine.apply(Prefill("probe", 2))
    except RuntimeError as error:
        return (
            f"SGLang's Rust tree core does not work with {classes.torch_here()}: {error}; use --engine sglang"
        )
    return None


PYTHON = SglangAdapter("python")
RUST = SglangAdapter("rust")
