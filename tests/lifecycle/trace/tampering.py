"""Changes to one step of a recorded trace, and what must be found about them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from .support import judged, recorded, tampered

NAMED: dict[str | int, str] = {"evicting": "Evicted", "rejected": "AdmissionRejected"}


class Tampering(NamedTuple):
    """What is changed in the first step that ``at`` picks, and what must then be found about whom."""

    change: Callable[[Any], object]
    subject: str
    found: str
    at: str | int = "Forward"
    scenario: str = "multiturn"
    nth: int = 0
    without_its_faults: bool = False
    record: Callable[[], bytes] | None = None

    @property
    def source(self) -> bytes:
        """The trace before it is tampered with."""
        if self.record is not None:
            return self.record()
        return recorded(self.scenario, without_its_faults=self.without_its_faults)


def slot(index: int, **fields: Any) -> Callable[[Any], None]:
    def change(step: Any) -> None:
        listed = step["changes"].setdefault("slots", [])
        view = next((view for view in listed if view["index"] == index), None)
        if view is None:
            view = {"index": index}
            listed.append(view)
        view.update(fields)

    return change


def node(index: int, **fields: Any) -> Callable[[Any], None]:
    return lambda step: step["changes"].setdefault("nodes", []).append({"id": index, **fields})


def request(**fields: Any) -> Callable[[Any], None]:
    return lambda step: step["changes"]["requests"][0].update(fields)


def event(kind: str, **fields: Any) -> Callable[[Any], None]:
    return lambda step: event_of(step, kind).update(fields)


def event_of(step: Any, kind: str) -> Any:
    return next(event for event in step["events"] if event["type"] == kind)


def change(**fields: Any) -> Callable[[Any], None]:
    return lambda step: step["changes"].update(fields)


def without(kind: str) -> Callable[[Any], None]:
    def change(step: Any) -> None:
        kept = [event for event in step["events"] if event["type"] != kind]
        assert len(kept) < len(step["events"]), f"the step reports a {kind}"
        step["events"] = kept

    return change


def flight(place: int, **fields: Any) -> Callable[[Any], None]:
    """Change the entry at ``place`` of the steps in flight."""

    def change(step: Any) -> None:
        listed = step["changes"]["in_flight"]
        (listed["put"] if isinstance(listed, dict) else listed)[place].update(fields)

    return change


def both(*changes: Callable[[Any], object]) -> Callable[[Any], None]:
    def change(step: Any) -> None:
        for one in changes:
            one(step)

    return change


def picks(t: Tampering) -> Callable[[Any], bool]:
    """Pick the step of this number, or the nth of the action, of the request or with the event."""
    seen = iter(range(10_000))

    def choose(step: Any) -> bool:
        action = step["action"]
        fits = step["step"] == t.at or action["type"] == t.at or t.at in action.get("rows", ())
        fits = fits or (t.at in NAMED and any(event["type"] == NAMED[t.at] for event in step["events"]))
        return fits and next(seen) == t.nth

    return choose


def require_caught(t: Tampering, folder: Path) -> None:
    """Fail unless the tampered step is found, as it should be, and nothing is wrong before it or without."""
    clean = judged(t.source, folder)
    assert (clean.violations, clean.damage) == ([], None)
    step, raw = tampered(t.source, picks(t), t.change)
    judgement = judged(raw, folder)
    caught = [f.violation for f in judgement.violations if f.step == step]
    about = [
        v
        for v in caught
        if v.subject.startswith(t.subject) and any(part in v.found for part in t.found.split("|"))
    ]
    assert about, [(v.invariant, v.subject, v.found) for v in caught] or judgement.damage
    assert min(f.step for f in judgement.violations) == step, "nothing is wrong before"
    assert judgement.exit_code == 1
