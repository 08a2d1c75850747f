"""The pytest plugin: scenario files are tests, and ``replaylife`` is a fixture.

Every pytest run on a machine with replaylife installed loads this file, so it imports nothing but pytest
until the first scenario is met.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.loader import Scenario
    from replaylife.lifecycle.snapshot import Transition
    from replaylife.lifecycle.trace.checker import Report
    from replaylife.playing import Result

BACKENDS = ("none", "torch", "triton")
SUFFIXES = (".yaml", ".yml")
MAX_BYTES = 1_000_000  # a larger file is no scenario
TOP_LEVEL = tuple(re.compile(rb"^%s[ \t]*:" % key, re.MULTILINE) for key in (b"title", b"steps"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and their ini twins."""
    group = parser.getgroup("replaylife", "replaylife: scenario files as tests")
    group.addoption(
        "--replaylife-engine",
        metavar="NAME",
        default=None,
        help="whose cache lives through scenarios: reference (default), sglang",
    )
    group.addoption(
        "--replaylife-backend", choices=BACKENDS, default=None, help="what computes scenarios (default: none)"
    )
    group.addoption(
        "--replaylife-device",
        metavar="DEVICE",
        default=None,
        help="where torch and triton compute: cpu, cuda, cuda:N, auto",
    )
    parser.addini("replaylife_engine", "whose cache lives through scenarios", default="reference")
    parser.addini("replaylife_backend", "what computes scenarios: none, torch or triton", default="none")
    parser.addini("replaylife_device", "where torch and triton compute scenarios", default="auto")
    parser.addini(
        "replaylife_paths",
        "folders whose YAML files are all scenarios; others are then collected only if named",
        type="paths",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an ini value that no option would take. Raises ``pytest.UsageError``."""
    backend = config.getini("replaylife_backend")
    if backend not in BACKENDS:
        raise pytest.UsageError(f"replaylife_backend: found {backend!r}, need one of {', '.join(BACKENDS)}")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a YAML file that is a scenario; leave all others to whom they belong."""
    if file_path.suffix not in SUFFIXES or not _is_meant(file_path, parent):
        return None
    collector: pytest.Collector = ScenarioFile.from_parent(parent, path=file_path)
    return collector


def _is_meant(path: Path, parent: pytest.Collector) -> bool:
    folders: list[Path] = parent.config.getini("replaylife_paths")
    if any(path.is_relative_to(folder) for folder in folders):
        return True
    named = parent.session.isinitpath(path)
    return (named or not folders) and looks_like_scenario(path)


def looks_like_scenario(path: Path) -> bool:
    """Whether a file has ``title`` and ``steps`` at its top level. Reads it, does not parse it."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return False
        raw = path.read_bytes()
    except OSError:
        return False
    return all(key.search(raw) for key in TOP_LEVEL)


class ScenarioFile(pytest.File):
    """A scenario file: one test, or a collection error that lists every mistake with its line."""

    def collect(self) -> Iterable[pytest.Item]:
        """Read and check the scenario."""
        from replaylife.cli.locate import readable_path
        from replaylife.lifecycle.scenario.errors import ScenarioError
        from replaylife.lifecycle.scenario.loader import load_scenario

        try:
            scenario = load_scenario(self.path)
        except ScenarioError as error:
            shown = readable_path(self.path)
            lines = [f"{shown}:{problem.line}: {problem.message}" for problem in error.problems]
            raise self.CollectError("\n".join(lines)) from None
        item: ScenarioItem = ScenarioItem.from_parent(self, name=scenario.name, scenario=scenario)
        yield item


class ScenarioItem(pytest.Item):
    """Plays one scenario; fails with the explanation."""

    def __init__(self, *, scenario: Scenario, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scenario = scenario

    def runtest(self) -> None:
        """Play. Raises :class:`_Broken` when something did not hold."""
        from replaylife.cli.locate import readable_path
        from replaylife.lifecycle.protocol import CannotExpress
        from replaylife.playing import play

        engine = engine_of(self.config)
        try:
            result = play(readable_path(self.path), **engine)
        except CannotExpress as error:
            pytest.skip(f"{engine['engine']} cannot express this: {error}")
        except ValueError as error:
            raise _Broken(f"cannot be played: {error}") from None
        self.user_properties += [
            ("replaylife_engine", result.run.engine),
            ("replaylife_backend", result.run.config.backend),
            ("replaylife_steps", len(result.steps)),
        ]
        if not result.held:
            raise _Broken(result.explanation)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the explanation alone; a defect of replaylife keeps its traceback."""
        if isinstance(excinfo.value, _Broken):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Name the test by its title."""
        return self.path, 0, f"{self.name}: {self.scenario.title}"


class _Broken(Exception):  # noqa: N818 - what a test shows, not an error of ours
    """A scenario did not hold."""


def engine_of(config: pytest.Config) -> dict[str, str]:
    """Return engine, backend and device: the option, else the ini value."""
    engine: str = config.getoption("replaylife_engine") or config.getini("replaylife_engine")
    backend: str = config.getoption("replaylife_backend") or config.getini("replaylife_backend")
    device: str = config.getoption("replaylife_device") or config.getini("replaylife_device")
    return {"engine": engine, "backend": backend, "device": "auto" if backend == "none" else device}


class Replaylife:
    """The fixture ``replaylife``: plays scenarios on the backend that the run is set to."""

    def __init__(self, config: pytest.Config) -> None:
        self._engine = engine_of(config)

    def play(self, scenario: str | Path, *, faults: Iterable[str] = (), **engine: str) -> Result:
        """Play a scenario by name or path; ``backend`` and ``device`` as in :func:`replaylife.play`."""
        from replaylife.playing import play

        return play(scenario, faults=faults, **{**self._engine, **engine})

    def check(self, transitions: Iterable[Transition]) -> Report:
        """Judge transitions of any engine, as :func:`replaylife.check`."""
        from replaylife.lifecycle.trace.checker import check

        return check(transitions)


@pytest.fixture
def replaylife(request: pytest.FixtureRequest) -> Replaylife:
    """Scenarios in your own tests: ``replaylife.play("multiturn").assert_held()``."""
    return Replaylife(request.config)
