"""What the tests of adapters share: SGLang if it is here, engines of ours in the place of another's."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from replaylife.conformance import Comparison, Portrait, differences, portray
from replaylife.engines.sglang.classes import SUPPORTED
from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.scenario.loader import Scenario, load_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def _installed() -> str:
    try:
        return version("sglang")
    except PackageNotFoundError:
        return "nothing"


needs_sglang = pytest.mark.skipif(
    _installed() not in SUPPORTED, reason=f"needs SGLang {SUPPORTED[0]}, {_installed()} is installed"
)


def shipped(name: str) -> Scenario:
    """Return a shipped scenario by name."""
    return load_scenario(SCENARIOS / f"{name}.yaml")


def all_shipped() -> list[str]:
    """Return the names of all shipped scenarios."""
    return sorted(path.stem for path in SCENARIOS.glob("*.yaml"))


def portrait(name: str, *faults: str) -> Portrait:
    """Play a shipped scenario on the reference engine with faults seeded."""
    scenario = shipped(name)
    engine = EngineFactory(EngineConfig(scenario.model, scenario.cache), faults).build()
    return portray(scenario, engine)


def against_faulty(name: str, *faults: str) -> Comparison:
    """Compare the reference engine with itself where it has ``faults``: in the place of another's defects."""
    ours, theirs = portrait(name), portrait(name, *faults)
    cache = shipped(name).cache
    return Comparison(name, "faulty", cache, None, ours, theirs, tuple(differences(ours, theirs)))
