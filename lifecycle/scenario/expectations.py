"""Judges a scenario's expectations against what happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from replaylife.lifecycle.events import AdmissionRejected, Event, Finished, Matched
from replaylife.lifecycle.invariants import INVARIANTS
from replaylife.lifecycle.snapshot import Measurement, NodeView, Snapshot, Violation

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.steps.expect import (
        DamageExpectation,
        Expect,
        NodeExpectation,
        ViolationExpectation,
    )


@dataclass(slots=True)
class Chronicle:
    """What a run has shown so far, as far as expectations ask for it.

    ``fresh`` are the last action's new violations, ``finished`` the ended requests, ``parted`` the first
    logits of each request that were out of tolerance, ``rejected`` the requests whose admission was
    rejected and not made good since. ``numeric`` says whether there are logits at all.
    """

    numeric: bool
    fresh: tuple[Violation, ...] = ()
    finished: dict[str, Finished] = field(default_factory=dict)
    parted: dict[str, Measurement] = field(default_factory=dict)
    rejected: set[str] = field(default_factory=set)

    def listen(self, events: Iterable[Event], measurements: Iterable[Measurement]) -> None:
        """Take note of one action's events and measurements."""
        for event in events:
            if isinstance(event, Finished):
                self.finished[event.request] = event
            elif isinstance(event, AdmissionRejected):
                self.rejected.add(event.request)
            elif isinstance(event, Matched) and event.request is not None:
                self.rejected.discard(event.request)
        for measured in measurements:
            if measured.kind == "logits" and measured.exceeded:
                self.parted.setdefault(measured.subject.removeprefix("request "), measured)


def judge(expect: Expect, snapshot: Snapshot, chronicle: Chronicle) -> list[str]:
    """Return one sentence for each expectation that does not hold."""
    failures = _judge_state(expect, snapshot)
    if expect.rejected is not None:
        failures += _differs("rejected", sorted(chronicle.rejected), sorted(expect.rejected))
    if expect.violations is not None:
        found = [v for v in chronicle.fresh if not INVARIANTS[v.invariant].from_tensors]
        failures += _judge_violations("violations", expect.violations, found)
    if not chronicle.numeric:
        return failures
    if expect.numeric is not None:
        found = [v for v in chronicle.fresh if INVARIANTS[v.invariant].from_tensors]
        failures += _judge_violations("numeric", expect.numeric, found)
    for name, damage in (expect.logits or {}).items():
        failures += _judge_damage(name, damage, chronicle.parted.get(name))
    for name, wanted in (expect.reply or {}).items():
        failures += _judge_reply(name, wanted, chronicle.finished.get(name))
    return failures


def _judge_state(expect: Expect, snapshot: Snapshot) -> list[str]:
    failures: list[str] = []
    if expect.tree is not None:
        failures += _judge_tree(expect.tree, snapshot)
    for name, cached in (expect.cached or {}).items():
        request = snapshot.request(name)
        failures += _differs(f"cached tokens of {name}", None if request is None else request.cached, cached)
    for name, cursor in (expect.cursor or {}).items():
        request = snapshot.request(name)
        slot = None if request is None or request.slot is None else snapshot.slots[request.slot]
        failures += _differs(f"write_pos of {name}", None if slot is None else slot.write_pos, cursor)
    for index, owner in (expect.owner or {}).items():
        holders = snapshot.slots[index].owners if 0 <= index < len(snapshot.slots) else ()
        failures += _differs(f"owner of slot {index}", " and ".join(map(str, holders)) or "nobody", owner)
    for where in ("host", "peer"):
        places = getattr(snapshot, f"{where}_places")
        for index, owner in (getattr(expect, where) or {}).items():
            holders = places[index].owners if index < len(places) else ()
            found = " and ".join(map(str, holders)) or "nobody"
            failures += _differs(f"owner of {where} place {index}", found, owner)
    if expect.free_slots is not None:
        failures += _differs("free slots", len(snapshot.free_slots), expect.free_slots)
    return failures


def _differs(what: str, found: object, expected: object) -> list[str]:
    return [] if found == expected else [f"{what}: found {found}, expected {expected}"]


def _judge_tree(expected: list[NodeExpectation], snapshot: Snapshot) -> list[str]:
    found = [_lengths(node, snapshot) for node in snapshot.nodes]
    wanted = [(node.key, node.state) for node in expected]
    if Counter(found) == Counter(wanted):
        return []
    return [f"tree: found {_list(found)}, expected {_list(wanted)}"]


def _lengths(node: NodeView, snapshot: Snapshot) -> tuple[int, int | None]:
    return node.key.length, None if node.state is None else snapshot.slots[node.state].temporal.length


def _list(nodes: Iterable[tuple[int, int | None]]) -> str:
    ordered = sorted(nodes, key=lambda node: (node[0], -1 if node[1] is None else node[1]))
    return (
        ", ".join(f"key {key} state {'none' if state is None else state}" for key, state in ordered)
        or "no nodes"
    )


def _judge_damage(name: str, damage: DamageExpectation, parted: Measurement | None) -> list[str]:
    if parted is None:
        return [f"logits of {name}: equal to the cold run's, expected to part at position {damage.position}"]
    failures = _differs(f"position where logits of {name} part", parted.position, damage.position)
    times = parted.error / parted.tolerance
    if times < damage.times_tolerance:
        failures.append(
            f"logits of {name}: off by {times:.0f} times the tolerance, "
            f"expected at least {damage.times_tolerance}"
        )
    return failures


def _judge_reply(name: str, wanted: str, finished: Finished | None) -> list[str]:
    if finished is None or finished.cold_reply is None:
        return [f"reply of {name}: it has not finished"]
    pairs = zip(finished.reply, finished.cold_reply, strict=True)
    wrong = [index for index, (warm, cold) in enumerate(pairs) if warm != cold]
    if wanted == "differs":
        return [] if wrong else [f"reply of {name}: equal to the cold run's, expected to differ"]
    if not wrong:
        return []
    return [
        f"reply of {name}: {len(wrong)} of {len(finished.reply)} tokens differ from the cold run's, "
        f"the first is reply token {wrong[0] + 1}"
    ]


def _judge_violations(
    where: str, expected: list[ViolationExpectation], fresh: Iterable[Violation]
) -> list[str]:
    left = list(fresh)
    failures = []
    for wanted in expected:
        met = next((v for v in left if _meets(wanted, v)), None)
        if met is None:
            subject = f" of {wanted.subject}" if wanted.subject else ""
            failures.append(f"{where}: expected {wanted.invariant}{subject}, it did not occur in this step")
        else:
            left.remove(met)
    failures += [f"{where}: {v.invariant} of {v.subject} occurred and was not expected" for v in left]
    return failures


def _meets(wanted: ViolationExpectation, violation: Violation) -> bool:
    return wanted.invariant == violation.invariant and wanted.subject in (None, violation.subject)
