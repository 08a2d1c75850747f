"""A slot, a request or a node that somebody follows through a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from replaylife.lifecycle.events import Event
from replaylife.lifecycle.snapshot import Snapshot, Transition

SubjectKind: TypeAlias = Literal["slot", "request", "node"]
_VIEWS: dict[SubjectKind, tuple[str, str]] = {
    "slot": ("slots", "index"),
    "request": ("requests", "id"),
    "node": ("nodes", "id"),
}
_NAMED: dict[SubjectKind, tuple[str, ...]] = {
    "slot": ("slot", "src", "dst"),
    "request": ("request",),
    "node": ("node",),
}
_LISTED: dict[SubjectKind, tuple[str, ...]] = {
    "slot": ("slots",),
    "request": (),
    "node": ("tombstoned", "removed"),
}


@dataclass(frozen=True, slots=True)
class Subject:
    """``slot 3``, ``request turn1`` or ``node 4``, as violations name them."""

    kind: SubjectKind
    id: int | str

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"

    def changes_in_line(self, raw: Mapping[str, Any]) -> bool:
        """Whether a step changes it or names it in an event, read off the step's line."""
        views, identity = _VIEWS[self.kind]
        changes = raw.get("changes")
        changed = changes.get(views) if isinstance(changes, dict) else None
        if isinstance(changed, list) and any(
            isinstance(view, dict) and view.get(identity) == self.id for view in changed
        ):
            return True
        events = raw.get("events")
        return isinstance(events, list) and any(
            isinstance(event, dict) and self._named(event.get) for event in events
        )

    def changes_in(self, t: Transition) -> bool:
        """Whether a step changes it or names it in an event."""
        if self._view(t.before) != self._view(t.after):
            return True
        return any(self._named_in(event) for event in t.events)

    def _view(self, snapshot: Snapshot) -> object:
        name, identity = _VIEWS[self.kind]
        views = getattr(snapshot, name)
        return next((view for view in views if getattr(view, identity) == self.id), None)

    def _named_in(self, event: Event) -> bool:
        return self._named(lambda name: getattr(event, name, None))

    def _named(self, get: Any) -> bool:
        if any(get(name) == self.id for name in _NAMED[self.kind]):
            return True
        return any(self.id in (get(name) or ()) for name in _LISTED[self.kind])


def subject_of(words: str) -> Subject | None:
    """Read ``slot 3``, ``node 4``, ``request a``, or a request's bare name; ``None`` for nothing."""
    kind, _, rest = words.strip().partition(" ")
    rest = rest.strip()
    if kind in ("slot", "node") and rest.isdecimal() and len(rest) < 10:
        return Subject("slot" if kind == "slot" else "node", int(rest))
    if kind == "request" and rest:
        return Subject("request", rest)
    return Subject("request", words.strip()) if words.strip() else None


def subjects(snapshot: Snapshot) -> list[Subject]:
    """Return everything there is to follow: requests, the slots in use, nodes."""
    found = [Subject("request", request.id) for request in snapshot.requests]
    used = [slot.index for slot in snapshot.slots if any(owner.kind != "free" for owner in slot.owners)]
    found += [Subject("slot", index) for index in used if index]
    return found + [Subject("node", node.id) for node in snapshot.nodes]
