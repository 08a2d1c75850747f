"""Many replays of one log: which points there are, who plays them, and what is on file already."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from replaylife.lifecycle.workload.point import Point, replay

AXES = ("strategy", "ring", "track_interval", "finish", "slots")
ATTEMPTS = 3  # pools that may break before a sweep gives up

Pool = Callable[[], AbstractContextManager[Executor]]


class Played(NamedTuple):
    """One point and its sums, as they are on file: plain data."""

    point: dict[str, Any]
    totals: dict[str, Any]

    @property
    def key(self) -> str:
        """What tells this point from any other."""
        return key_of(self.point)


def key_of(point: Mapping[str, Any]) -> str:
    """Return the canonical text of a point."""
    return json.dumps(point, sort_keys=True)


def grid(base: Point, axes: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Return ``base`` with every combination of the values of ``axes``, each once, in order."""
    combinations = product(*axes.values())
    points = [replace(base, **dict(zip(axes, values, strict=True))) for values in combinations]
    return list(dict.fromkeys(points))


def play(point: Point, path: str | None) -> Played:
    """Play one point: what a worker does. Raises what ``replay`` raises."""
    return Played(point.record(), replay(point, path).totals.record())


class Results:
    """The file of a sweep: JSON Lines, a header that names the log, then a line a point, flushed one by one.

    A sweep that was stopped goes on where it was: points on file are not played again. A last line that was
    cut short by a crash is dropped. ``path`` ``None`` keeps nothing. Raises ``ValueError`` for a file of
    another log.
    """

    def __init__(self, path: Path | None, log: str | None) -> None:
        self._path, self.played = path, dict[str, Played]()
        self._log = _digest(log)
        if path is None:
            return
        whole = self._read(path) if path.exists() else 0
        with path.open("ab") as file:
            file.truncate(whole)
        if not whole:
            self._write({"log": self._log})

    def _read(self, path: Path) -> int:
        """Take in what is on file; return how many bytes of it are whole lines."""
        whole = 0
        for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
            if not line.endswith(b"\n"):
                break
            try:
                told = json.loads(line)
                if number == 1:
                    self._require_log(told["log"])
                else:
                    self._keep(Played(told["point"], told["totals"]))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"{path}:{number}: {error!r}; expected a file that sweep --out wrote"
                ) from None
            whole += len(line)
        return whole

    def _require_log(self, log: str) -> None:
        if log != self._log:
            raise ValueError(f"results of another log ({log[:12]}, this one is {self._log[:12]})")

    def _keep(self, played: Played) -> bool:
        new = played.key not in self.played
        if new:
            self.played[played.key] = played
        return new

    def add(self, played: Played) -> None:
        """Book a point, once: what is there already is neither kept nor written again."""
        if self._keep(played):
            self._write({"point": played.point, "totals": played.totals})

    def _write(self, line: dict[str, Any]) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def missing(self, points: Iterable[Point]) -> list[Point]:
        """Return the points that are not on file."""
        return [point for point in points if key_of(point.record()) not in self.played]

    def of(self, points: Iterable[Point]) -> list[Played]:
        """Return what is on file of these points, in their order."""
        keys = (key_of(point.record()) for point in points)
        return [self.played[key] for key in keys if key in self.played]


def _digest(log: str | None) -> str:
    if log is None:
        return "excerpt"
    with Path(log).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sweep(points: Sequence[Point], log: str | None, pool: Pool, results: Results) -> Iterator[Played]:
    """Play the points that are not on file, on any executor, and yield each as it is done.

    Where the executor itself breaks (a local worker was killed), a new one takes what is left, a few times.
    A point is booked when its result arrives and never twice. Raises what a replay raises; what was played
    by then is on file.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with pool() as executor:
                yield from _round(executor, results.missing(points), log, results)
            return
        except BrokenExecutor:
            if attempt == ATTEMPTS:
                raise


def _round(
    executor: Executor, points: Sequence[Point], log: str | None, results: Results
) -> Iterator[Played]:
    """Play each point once; if the executor breaks, yield what it still finished, then raise."""
    futures: list[Future[Played]] = [executor.submit(play, point, log) for point in points]
    broken: BrokenExecutor | None = None
    try:
        for future in as_completed(futures):
            try:
                played = Played(*future.result())
            except BrokenExecutor as error:
                broken = error
                continue
            results.add(played)
            yield played
    finally:
        for future in futures:
            future.cancel()
    if broken is not None:
        raise broken
