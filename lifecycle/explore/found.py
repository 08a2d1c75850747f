"""What a search has seen, and where it stops."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from replaylife.lifecycle.explore.schema import Scope
from replaylife.lifecycle.snapshot import Transition, Violation
from replaylife.lifecycle.wander.moves import Move
from replaylife.lifecycle.wander.situations import SITUATIONS

NO_PARENT = 2**32 - 1


class Ending(Enum):
    """Why a search ended."""

    EXHAUSTED = "exhausted"
    VIOLATION = "violation"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"


class Trouble(NamedTuple):
    """A transition that broke something: from state ``parent`` by ``move``.

    ``violations`` is empty, and ``breakdown`` says what was raised, where the engine itself broke down.
    """

    parent: int
    kind: str
    move: Move
    transition: Transition | None
    violations: tuple[Violation, ...]
    breakdown: str = ""


class Edge(NamedTuple):
    """One transition of the state graph; ``target`` is ``None`` where it broke something."""

    source: int
    target: int | None
    kind: str
    move: Move


@dataclass(slots=True)
class Found:
    """What a search has seen: counts, and how each state was reached first.

    State 0 is the beginning; ``parents`` and ``via`` have the state before each and the number of its move in
    ``moves``. ``depth`` is the length of the longest shortest path, ``cut`` the states at the scope's depth
    bound that were not gone on from.
    """

    parents: array[int] = field(default_factory=lambda: array("I", [NO_PARENT]))
    via: array[int] = field(default_factory=lambda: array("I", [0]))
    moves: list[Move] = field(default_factory=list)
    transitions: int = 0
    refused: int = 0
    depth: int = 0
    cut: int = 0
    levels: list[int] = field(default_factory=lambda: [1])
    kinds: Counter[str] = field(default_factory=Counter)
    situations: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(SITUATIONS, 0)))
    troubles: list[Trouble] = field(default_factory=list)
    ending: Ending = Ending.EXHAUSTED
    seconds: float = 0.0
    _numbers: dict[Move, int] = field(default_factory=dict)

    @property
    def states(self) -> int:
        """Distinct states."""
        return len(self.parents)

    def path(self, state: int) -> list[Move]:
        """Return the moves of a shortest path to a state."""
        moves: list[Move] = []
        while self.parents[state] != NO_PARENT:
            moves.append(self.moves[self.via[state]])
            state = self.parents[state]
        return moves[::-1]

    def way_to(self, trouble: Trouble) -> list[Move]:
        """Return the moves of a shortest path through a trouble."""
        return [*self.path(trouble.parent), trouble.move]

    def add(self, parent: int, move: Move) -> int:
        """Book a new state; return its number."""
        number = self._numbers.get(move)
        if number is None:
            number = self._numbers[move] = len(self.moves)
            self.moves.append(move)
        self.parents.append(parent)
        self.via.append(number)
        return len(self.parents) - 1

    def mark(self) -> Mark:
        """Return where the counts stand, for :meth:`back_to`."""
        sizes = len(self.parents), len(self.moves)
        return Mark(*sizes, self.transitions, self.refused, self.kinds.copy(), self.situations.copy())

    def back_to(self, mark: Mark) -> None:
        """Forget all that was booked since."""
        del self.parents[mark.states :], self.via[mark.states :]
        for move in self.moves[mark.moves :]:
            del self._numbers[move]
        del self.moves[mark.moves :]
        self.transitions, self.refused = mark.transitions, mark.refused
        self.kinds, self.situations = mark.kinds, mark.situations


class Mark(NamedTuple):
    """How far the counts of a search had come."""

    states: int
    moves: int
    transitions: int
    refused: int
    kinds: Counter[str]
    situations: Counter[str]


@dataclass(frozen=True, slots=True)
class Budget:
    """Where a search stops though there is more; ``None`` where nothing bounds it."""

    states: int | None = None
    seconds: float | None = None


def never(scope: Scope, found: Found) -> list[str]:
    """Return the situations that a scope must reach and a search has not."""
    return [name for name in scope.reaches if not found.situations[name]]
