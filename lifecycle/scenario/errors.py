"""What is wrong with a scenario file, all of it at once, with lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Problem(NamedTuple):
    """One mistake: where it stands (from 1) and what to do about it."""

    line: int
    message: str


MAX_PROBLEMS = 100


class ScenarioError(Exception):
    """A scenario file that cannot be played.

    ``problems`` has every mistake found, in file order; of more than :data:`MAX_PROBLEMS` the last says how
    many more there are.
    """

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        self.path = path
        ordered = sorted(problems)
        if len(ordered) > MAX_PROBLEMS:
            shown, line = ordered[: MAX_PROBLEMS - 1], ordered[MAX_PROBLEMS - 1].line
            more = len(ordered) - len(shown)
            ordered = [*shown, Problem(line, f"{more:,} more mistakes from here on; is it a scenario?")]
        self.problems = tuple(ordered)
        super().__init__("\n".join(f"{path}:{problem.line}: {problem.message}" for problem in self.problems))
