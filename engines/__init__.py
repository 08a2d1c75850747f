"""Engines of other projects, driven and observed through the same protocol as ours.

An adapter imports nothing of its engine before :meth:`Adapter.build` is called.
"""

from replaylife.engines.registry import ENGINES, Adapter, EngineUnavailable, adapter_of

__all__ = ["ENGINES", "Adapter", "EngineUnavailable", "adapter_of"]
