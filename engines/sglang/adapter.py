"""The adapters ``sglang`` and ``sglang-rust``: SGLang's cache with its Python and with its Rust tree core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from replaylife.engines.registry import EngineUnavailable
from replaylife.engines.sglang import classes
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
        return f"{classes.title()}, {self.core} tree core"

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


PYTHON = SglangAdapter("python")
RUST = SglangAdapter("rust")
