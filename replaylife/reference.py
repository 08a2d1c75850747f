"""Faults, invariants, strategies and shipped scenarios as plain data, read off the code itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import as_file, files
from inspect import cleandoc, getmembers, isfunction
from typing import Any, ClassVar, TypeAlias

from replaylife.cli.locate import shipped_scenarios
from replaylife.lifecycle.faults import FAULTS, Fault
from replaylife.lifecycle.faults.mechanisms import mechanisms
from replaylife.lifecycle.invariants import INVARIANTS, Invariant
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.scenario.loader import Scenario, load_scenario
from replaylife.lifecycle.scenario.steps.expect import Expect
from replaylife.lifecycle.strategies import STRATEGIES, Strategy

RUNS = {
    "ledger": Capabilities(replayssm=True, numeric=False, witness=False, speculation=True),
    "tensors": Capabilities(replayssm=True, numeric=True, witness=False, speculation=True),
    "witness": Capabilities(replayssm=True, numeric=False, witness=True, speculation=True),
}


@dataclass(frozen=True, slots=True)
class FaultEntry:
    """A seeded fault. ``ledger`` and ``numeric`` are the invariants that it trips at its first step.

    ``damage`` is ``logits``, or says why its scenario's logits stay right; ``mechanisms`` are the reports
    that it reproduces.
    """

    kind: ClassVar[str] = "fault"

    id: str
    title: str
    source: str
    mechanism: str
    right_value: str
    replaces: str
    ledger: tuple[str, ...]
    numeric: tuple[str, ...]
    damage: str
    mechanisms: tuple[str, ...]
    scenario: str
    command: str
    related: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InvariantEntry:
    """An invariant. ``judged_from`` is ``positions`` or ``tensors``, ``judged_in`` the runs that judge it.

    ``tripped_by`` are the faults that break it at their first step; ``scenario`` is the shortest of theirs.
    """

    kind: ClassVar[str] = "invariant"

    id: str
    claim: str
    judged_from: str
    judged_in: tuple[str, ...]
    tripped_by: tuple[str, ...]
    scenario: str | None
    command: str
    related: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StrategyEntry:
    """A cache strategy: what it does at each moment, and the shipped scenarios that use it."""

    kind: ClassVar[str] = "strategy"

    id: str
    title: str
    source: str
    moments: dict[str, str]
    scenarios: tuple[str, ...]
    command: str
    related: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScenarioEntry:
    """A shipped scenario. ``steps`` counts them, ``kinds`` by key; ``expects`` are named violations."""

    kind: ClassVar[str] = "scenario"

    id: str
    title: str
    description: str
    gate: str
    strategy: str
    replayssm: bool
    ring_length: int
    track_interval: int
    finish: str
    track: str
    faults: tuple[str, ...]
    steps: int
    kinds: dict[str, int]
    expects: tuple[str, ...]
    file: str
    command: str
    related: tuple[str, ...]


Entry: TypeAlias = FaultEntry | InvariantEntry | StrategyEntry | ScenarioEntry


def record(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON has it."""
    return {"kind": entry.kind, **asdict(entry)}


@cache
def shipped() -> Mapping[str, Scenario]:
    """Return every shipped scenario by name, read and checked."""
    loaded = {}
    for name, file in shipped_scenarios().items():
        with as_file(files("replaylife.scenarios") / file) as path:
            loaded[name] = load_scenario(path)
    return loaded


def play_command(scenario: str, *options: str, tensors: bool = False) -> str:
    """Return the command that plays a scenario, on tensors only where they are needed."""
    return " ".join(("replaylife run", scenario, "--backend", "torch" if tensors else "none", *options))


def fault_entry(fault: Fault) -> FaultEntry:
    """Describe a fault; related are those that an invariant which catches it catches too."""
    ids = {*(fault.ledger or fault.numeric)}
    return FaultEntry(
        id=fault.id,
        title=fault.title,
        source=fault.source,
        mechanism=fault.mechanism,
        right_value=fault.right_value,
        replaces=_replaced(fault.mixin),
        ledger=fault.ledger,
        numeric=fault.numeric,
        damage=fault.damage,
        mechanisms=tuple(id for id, known in mechanisms().items() if fault.id in known.faults),
        scenario=fault.scenario,
        command=play_command(fault.scenario, tensors=not fault.ledger),
        related=tuple(f.id for f in FAULTS.values() if f is not fault and ids & {*(f.ledger or f.numeric)}),
    )


def _replaced(mixin: type) -> str:
    """Name the class and the method that a fault replaces, in words of the engine."""
    method = next(name for name, value in vars(mixin).items() if isfunction(value))
    owner = next(base for base in mixin.__mro__[1:] if method in vars(base))
    return f"{owner.__name__}.{method}"


def invariant_entry(invariant: type[Invariant]) -> InvariantEntry:
    """Describe an invariant; related are those that break together with it."""
    faults = [f for f in FAULTS.values() if invariant.id in (*f.ledger, *f.numeric)]
    together = [i for f in faults for i in (*f.ledger, *f.numeric) if i != invariant.id]
    judge = invariant()
    judged_in = tuple(name for name, capabilities in RUNS.items() if judge.applies_to(capabilities))
    shortest = min(faults, key=lambda f: len(shipped()[f.scenario].steps), default=None)
    witness = () if "ledger" in judged_in or "tensors" in judged_in else ("--witness",)
    return InvariantEntry(
        id=invariant.id,
        claim=invariant.claim,
        judged_from="tensors" if invariant.from_tensors else "positions",
        judged_in=judged_in,
        tripped_by=tuple(fault.id for fault in faults),
        scenario=None if shortest is None else shortest.scenario,
        command=play_command(
            "multiturn" if shortest is None else shortest.scenario, *witness, tensors=invariant.from_tensors
        ),
        related=tuple(dict.fromkeys(together)),
    )


def strategy_entry(id: str, strategy: type[Strategy]) -> StrategyEntry:
    """Describe a strategy by its docstrings."""
    title, _, source = cleandoc(strategy.__doc__ or "").partition("\n\n")
    moments = {
        name: _first_line(getattr(strategy, name).__doc__)
        for name, method in getmembers(Strategy, isfunction)
        if getattr(method, "__isabstractmethod__", False)
    }
    scenarios = tuple(name for name, scenario in shipped().items() if scenario.cache.strategy == id)
    return StrategyEntry(
        id=id,
        title=_one_line(title),
        source=_one_line(source.removeprefix("Source: ")),
        moments=moments,
        scenarios=scenarios,
        command=play_command(scenarios[0] if "multiturn" not in scenarios else "multiturn"),
        related=tuple(name for name in STRATEGIES if name != id),
    )


def scenario_entry(name: str, scenario: Scenario) -> ScenarioEntry:
    """Describe a shipped scenario; related are its faults, what it expects broken, and its variants."""
    bodies = [entry.step.body for entry in scenario.steps]
    kinds: dict[str, int] = {}
    for body in bodies:
        kinds[body.key] = kinds.get(body.key, 0) + 1
    expected = [
        wanted.invariant
        for body in bodies
        if isinstance(body, Expect)
        for wanted in (*(body.violations or ()), *(body.numeric or ()))
    ]
    expects = tuple(dict.fromkeys(expected))
    variants = [
        other
        for other in shipped()
        if f"{other}-".startswith(f"{name}-") or f"{name}-".startswith(f"{other}-")
    ]
    cache = scenario.cache
    return ScenarioEntry(
        id=name,
        title=scenario.title,
        description=_one_line(scenario.description),
        gate=scenario.model.gate,
        strategy=cache.strategy,
        replayssm=cache.replayssm,
        ring_length=cache.ring_length,
        track_interval=cache.track_interval,
        finish=cache.finish,
        track=cache.track,
        faults=scenario.faults,
        steps=len(scenario.steps),
        kinds=kinds,
        expects=expects,
        file=scenario.path,
        command=play_command(name, tensors=_needs_tensors(scenario)),
        related=tuple(id for id in dict.fromkeys((*scenario.faults, *expects, *variants)) if id != name),
    )


def _needs_tensors(scenario: Scenario) -> bool:
    """Whether what a scenario seeds shows in tensors alone."""
    return any(not FAULTS[fault].ledger for fault in scenario.faults)


def _one_line(text: str) -> str:
    return " ".join(text.replace("``", "").split())


def _first_line(text: str | None) -> str:
    return _one_line(cleandoc(text or "").split("\n\n")[0])


MEANINGS: dict[str, tuple[Callable[[], Iterable[str]], Callable[[str], Entry]]] = {
    "fault": (lambda: FAULTS, lambda id: fault_entry(FAULTS[id])),
    "invariant": (lambda: INVARIANTS, lambda id: invariant_entry(INVARIANTS[id])),
    "strategy": (lambda: STRATEGIES, lambda id: strategy_entry(id, STRATEGIES[id])),
    "scenario": (shipped_scenarios, lambda id: scenario_entry(id, shipped()[id])),
}


def meanings(id: str) -> list[Entry]:
    """Return what an id names; a fault and its scenario may share one. Empty if nothing has this id."""
    return [describe(id) for names, describe in MEANINGS.values() if id in names()]


def entries(kind: str) -> list[Entry]:
    """Return all entries of a kind, in the order of the catalogue."""
    names, describe = MEANINGS[kind]
    return [describe(id) for id in names()]
