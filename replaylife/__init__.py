"""Plays the life of a recurrent state in a hybrid-model serving engine, and finds the step that broke it.

The public names below are imported when they are first used, so that ``import replaylife`` costs nothing
and needs neither torch nor triton.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from replaylife.lifecycle.config import EngineConfig as EngineConfig
    from replaylife.lifecycle.factory import EngineFactory as EngineFactory
    from replaylife.lifecycle.scenario.loader import load_scenario as load_scenario
    from replaylife.lifecycle.scenario.player import Player as Player
    from replaylife.lifecycle.trace.checker import check as check
    from replaylife.playing import play as play

    __version__: str

_checkout = Path(__file__).resolve().parent.parent
if (_checkout / "pyproject.toml").is_file() and (_checkout / "lifecycle").is_dir():
    # Python run in a checkout finds this folder before an installed replaylife; its siblings are subpackages.
    __path__ = [*__path__, str(_checkout)]

_HOMES = {
    "EngineConfig": "replaylife.lifecycle.config",
    "EngineFactory": "replaylife.lifecycle.factory",
    "Player": "replaylife.lifecycle.scenario.player",
    "check": "replaylife.lifecycle.trace.checker",
    "load_scenario": "replaylife.lifecycle.scenario.loader",
    "play": "replaylife.playing",
}

__all__ = ["EngineConfig", "EngineFactory", "Player", "__version__", "check", "load_scenario", "play"]


def __getattr__(name: str) -> Any:
    """Import a public name from its home. Raises ``AttributeError`` for any other."""
    if name == "__version__":
        from importlib.metadata import version

        return version("replaylife")
    if name not in _HOMES:
        raise AttributeError(f"module 'replaylife' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
