"""The links of a chain from the step that planted a violation to where it bites."""

from __future__ import annotations

from dataclasses import dataclass, field

from replaylife.lifecycle.events_outside import Place
from replaylife.lifecycle.snapshot import Transition, Violation

MAX_CARRIED = 6  # links kept between the planting and the bite; more are counted


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a chain: the steps ``first`` to ``last``, what was done, and what that did."""

    first: int
    last: int
    action: str
    text: str

    @property
    def steps(self) -> str:
        """``step 24``, or ``steps 20..23``."""
        return f"step {self.first}" if self.first == self.last else f"steps {self.first}..{self.last}"


@dataclass(slots=True)
class Chain:
    """Why a violation is there, and what comes of it.

    ``planted`` is where the state and what is said of it first went apart; ``carried`` the steps that handed
    it on, ``num_carried`` of them; ``bites`` where an answer is computed from it, the reply last. ``also``
    are the later violations of the same root: (step, violation). ``cut`` says that the planting may lie
    before the first step that was looked at.
    """

    step: int
    violation: Violation
    planted: Link
    carried: list[Link] = field(default_factory=list)
    num_carried: int = 0
    bites: list[Link] = field(default_factory=list)
    also: list[tuple[int, Violation]] = field(default_factory=list)
    cut: bool = False
    slots: set[int] = field(default_factory=set)
    nodes: set[int] = field(default_factory=set)
    requests: set[str] = field(default_factory=set)
    places: set[Place] = field(default_factory=set)

    def carry(self, link: Link) -> None:
        """Add a step that handed it on; the same step once."""
        if self.carried and self.carried[-1] == link:
            return
        self.num_carried += 1
        if len(self.carried) < MAX_CARRIED:
            self.carried.append(link)


def here(t: Transition, text: str) -> Link:
    """Return what happened in step ``t`` as a link."""
    return Link(t.step, t.step, str(t.action), text)
