"""Which engines there are, and what an adapter must offer."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.protocol import Engine

ENGINES = {
    "sglang": ("replaylife.engines.sglang.adapter", "PYTHON"),
    "sglang-rust": ("replaylife.engines.sglang.adapter", "RUST"),
}
"""Name to the module and the name that the adapter has in it."""


class EngineUnavailable(Exception):  # noqa: N818 - says what is not installed, no fault of ours
    """The engine is not installed here, or in a version that the adapter does not know."""


class Adapter(Protocol):
    """One engine of another project."""

    @property
    def title(self) -> str:
        """The engine's name and version, as a reader of the trace needs it. Raises ``EngineUnavailable``."""
        ...

    def inexpressible(self, config: EngineConfig) -> str | None:
        """Say what of ``config`` the engine cannot express, or ``None``. Needs nothing installed."""
        ...

    def build(self, config: EngineConfig) -> Engine:
        """Return a fresh engine.

        Raises :class:`EngineUnavailable` where it is not installed in a known version, and
        :class:`~replaylife.lifecycle.protocol.CannotExpress` for a configuration that it does not have.
        """
        ...


def adapter_of(name: str) -> Adapter:
    """Return the adapter of an engine. Raises ``KeyError`` for an unknown name."""
    module, attribute = ENGINES[name]
    return cast("Adapter", getattr(import_module(module), attribute))
