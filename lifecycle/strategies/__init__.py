"""Cache strategies: when a running request leaves checkpoints, and what it donates at the end."""

from replaylife.lifecycle.strategies.align import Align
from replaylife.lifecycle.strategies.base import Strategy
from replaylife.lifecycle.strategies.extra_buffer import ExtraBuffer, ExtraBufferLazy
from replaylife.lifecycle.strategies.no_buffer import NoBuffer

STRATEGIES: dict[str, type[Strategy]] = {
    "no_buffer": NoBuffer,
    "extra_buffer": ExtraBuffer,
    "extra_buffer_lazy": ExtraBufferLazy,
    "align": Align,
}

__all__ = ["STRATEGIES", "Align", "ExtraBuffer", "ExtraBufferLazy", "NoBuffer", "Strategy"]
