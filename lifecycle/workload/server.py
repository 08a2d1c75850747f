"""Plays turns through an engine as a server would: continuous batching by arrival time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from replaylife.lifecycle.actions import Action, Finish, Forward, Retract
from replaylife.lifecycle.events import AdmissionRejected, Event, Matched
from replaylife.lifecycle.invariants import Checker
from replaylife.lifecycle.protocol import ActionRefused, CannotExpress, transit
from replaylife.lifecycle.snapshot import Violation
from replaylife.lifecycle.workload.conversation import Turn
from replaylife.lifecycle.workload.script import Script, ScriptedFactory, admit
from replaylife.lifecycle.workload.tally import Tally, Totals

KEPT = 20  # violations kept in full; more are counted


@dataclass(frozen=True, slots=True)
class Pace:
    """How a server batches: at most ``rows`` requests at once, ``chunk`` prompt tokens a step.

    A step takes ``step_ms``, whatever is in it: that turns arrival times into steps. Requests are admitted in
    the order of arrival; a rejected one waits, and all behind it, until a request has ended.
    """

    rows: int = 64
    chunk: int = 8_192
    step_ms: float = 30.0


@dataclass(slots=True)
class Job:
    """A turn in the server. ``script`` has the tokens so far; after a retraction they are all prompt."""

    name: str
    turn: Turn
    script: Script
    left: int = 0
    come_back: bool = False

    @property
    def done(self) -> bool:
        """Whether the whole reply has been sampled."""
        return self.script.length == len(self.turn.text)


class Server:
    """One engine, its queue and its running batch. ``run`` plays turns; the sums are in ``totals``."""

    def __init__(self, factory: ScriptedFactory, pace: Pace | None = None, *, check: bool = True) -> None:
        self.pace = pace or Pace()
        self._engine = factory.build()
        self._checker = Checker(self._engine.capabilities) if check else None
        self._tally = Tally()
        self._queue: deque[Job] = deque()
        self._running: dict[str, Job] = {}
        self._now, self._blocked, self._actions = 0.0, False, 0
        self._grid = factory.config.cache.grid
        self._capacity = factory.config.cache.kv_tokens
        self.violations: list[tuple[int, Violation]] = []

    @property
    def totals(self) -> Totals:
        """The sums so far."""
        return self._tally.totals

    def run(self, turns: Iterable[Turn]) -> Iterator[int]:
        """Play all turns to their end; yield, after each step, how many have come in from the log.

        Raises :class:`CannotExpress` for a request that the pool could not hold even if it were alone.
        """
        arriving = iter(turns)
        coming = next(arriving, None)
        taken = 0
        while coming is not None or self._queue or self._running:
            while coming is not None and coming.entry.timestamp <= self._now:
                self._require_room(coming)
                self._queue.append(_job(coming))
                coming, taken = next(arriving, None), taken + 1
            self._admit()
            if self._running:
                self._step()
            elif coming is not None and not self._queue:
                self._now = max(self._now, float(coming.entry.timestamp))
                continue
            self._now += self.pace.step_ms
            yield taken

    def _require_room(self, turn: Turn) -> None:
        """Refuse a request that must fail in the end, before hours of decoding."""
        needed = len(turn.text) - 1  # the last token is sampled and has no key-value
        if needed > self._capacity:
            raise CannotExpress(
                f"line {turn.entry.line}: {needed:,} tokens of prompt and reply do not fit even alone in "
                f"{self._capacity:,} key-value tokens; raise kv_tokens"
            )

    # -- coming --------------------------------------------------------------------------------------

    def _admit(self) -> None:
        """Admit from the front of the queue until the batch is full or one is rejected."""
        while self._queue and not self._blocked and len(self._running) < self.pace.rows:
            job = self._queue[0]
            events = self._apply(admit(job.name, job.script))
            rejected = next((e for e in events if isinstance(e, AdmissionRejected)), None)
            if rejected is not None:
                if not self._running:
                    raise CannotExpress(
                        f"line {job.turn.entry.line}: {len(job.script)} prompt tokens do not fit even alone: "
                        f"{rejected.reason}; raise kv_tokens or slots"
                    )
                self._blocked = True
                return
            self._queue.popleft()
            self._running[job.name] = job
            match = next(e for e in events if isinstance(e, Matched))
            job.left = len(job.script) - match.state_len
            if not job.come_back:
                continues = job.turn.continues
                self._tally.admitted(match, len(job.script), None if continues is None else f"r{continues}")

    # -- running -------------------------------------------------------------------------------------

    def _step(self) -> None:
        """One forward: a decode row for each request whose prompt is done, and chunks for the others."""
        chunks, budget = list[tuple[str, int]](), self.pace.chunk
        for name, job in self._running.items():
            if job.left and budget:
                count = self._chunk(job, budget)
                if count:
                    chunks.append((name, count))
                    budget -= count
        rows = tuple(name for name, job in self._running.items() if not job.left)
        if not self._forward(Forward(rows, tuple(chunks))):
            return
        self._tally.totals.steps += 1
        for name, count in chunks:
            job = self._running[name]
            job.left -= count
            if not job.left:
                job.script.length += 1
        for name in rows:
            self._running[name].script.length += 1
        for name in [name for name, job in self._running.items() if job.done]:
            self._end(Finish(name))

    def _chunk(self, job: Job, budget: int) -> int:
        """Tokens of the next chunk: a chunk that is not the last ends on the grid."""
        if job.left <= budget:
            return job.left
        start = len(job.script) - job.left
        return max(0, (start + budget) // self._grid * self._grid - start)

    def _forward(self, action: Forward) -> bool:
        """Take a step; where the key-value tokens do not suffice, retract the newest request instead."""
        try:
            self._apply(action)
        except ActionRefused:
            if len(self._running) < 2:
                raise
            name, job = self._running.popitem()
            self._running[name] = job
            self._end(Retract(name))
            job.come_back = True
            job.script = Script(job.turn.text, len(job.script))
            self._queue.appendleft(job)
            self._blocked = True  # until one has ended: it would take the tokens that were just given back
            return False
        return True

    def _end(self, action: Finish | Retract) -> None:
        self._apply(action)
        del self._running[action.request]
        self._blocked = False

    def _apply(self, action: Action) -> tuple[Event, ...]:
        """Apply an action, check every invariant, book what happened."""
        self._actions += 1
        t = transit(self._engine, action, self._actions)
        if self._checker is not None:
            found = self._checker.check(t)
            if found:
                self._tally.totals.violations += len(found)
                self.violations += [(t.step, violation) for violation in found][: KEPT - len(self.violations)]
        self._tally.listen(t.events)
        used = len(t.after.slots) - 1 - len(t.after.free_slots)
        self._tally.totals.peak_slots = max(self._tally.totals.peak_slots, used)
        return t.events


def _job(turn: Turn) -> Job:
    return Job(f"r{turn.entry.line}", turn, Script(turn.text, turn.entry.input_length))
