"""Builds the engine of a run: the reference engine, or an adapter's."""

from __future__ import annotations

from replaylife.engines import adapter_of
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.protocol import Engine
from replaylife.view.heading import REFERENCE, Run


def build_engine(run: Run) -> Engine:
    """Return a fresh engine for ``run``.

    Raises ``ValueError``, ``RuntimeError`` or ``ImportError`` where the reference engine cannot be built, and
    what :meth:`replaylife.engines.Adapter.build` raises.
    """
    if run.engine == REFERENCE:
        return EngineFactory(run.config, run.faults).build()
    return adapter_of(run.engine).build(run.config)
