"""The lines of a trace: what each kind holds. docs/trace.md is the description for readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from replaylife.lifecycle.actions import Action
from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.events import Event
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import Measurement, Snapshot, Violation

FORMAT = "replaylife-trace"
VERSION = 1
KEYFRAME_EVERY = 64
MAX_LINE_BYTES = 8 * 1024 * 1024

Ending: TypeAlias = Literal["complete", "stopped", "interrupted"]


class Changes(dict[str, Any]):
    """What a step changed, in JSON: see :mod:`replaylife.lifecycle.trace.changes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line: what was run, on what.

    ``digest`` is that of the scenario file, ``config`` everything a reference engine is built from (``null``
    for another engine), ``faults`` the seeded ones, ``command`` what repeats the run. A ``keyframe`` line
    follows every ``keyframe_every`` steps.
    """

    format: str = FORMAT
    version: int = VERSION
    tool: str
    scenario: str
    capabilities: Capabilities
    engine: str = "reference"
    title: str = ""
    path: str = ""
    digest: str = ""
    seed: int | None = None
    config: EngineConfig | None = None
    faults: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    keyframe_every: int = KEYFRAME_EVERY


@dataclass(frozen=True, slots=True)
class Keyframe:
    """The whole state after ``step`` (0: before the first). A reader can begin at any of them."""

    step: int
    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One applied action.

    ``step`` counts from 1 without gaps, ``line`` is the scenario's line. ``changes`` lead from the state
    before to the state after; ``measurements`` are what numeric checks compared; ``violations`` are those
    whose (invariant, subject) had not occurred before.
    """

    step: int
    line: int | None = None
    action: Action
    events: tuple[Event, ...]
    changes: Changes
    measurements: tuple[Measurement, ...] = ()
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True)
class Expectation:
    """Whether an expectation of the scenario, at this point and in that ``line``, held."""

    held: bool
    line: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """The last line: what the run came to. A trace without it was cut, or its run was killed.

    ``violations`` counts each (invariant, subject) once, ``unexpected`` those that the scenario did not set
    out to show; ``caught_at`` is the step whose violations it expected first.
    """

    held: bool
    ending: Ending
    steps: int
    violations: int
    unexpected: int
    failures: int
    caught_at: int | None = None


Line: TypeAlias = Header | Keyframe | Step | Expectation | VerdictLine

KINDS: dict[str, type] = {
    "header": Header,
    "keyframe": Keyframe,
    "step": Step,
    "expectation": Expectation,
    "verdict": VerdictLine,
}
