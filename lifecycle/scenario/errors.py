"""What is wrong with a scenario file, all of it at once, with lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Problem(NamedTuple):
    """One mistake: where it stands (from 1) and what to do about it."""

    line: int
    message: str


class ScenarioError(Exception):
    """A scenario file that cannot be played. ``problems`` has every mistake found, in file order."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        self.path = path
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(f"{path}:{problem.line}: {problem.message}" for problem in self.problems))
