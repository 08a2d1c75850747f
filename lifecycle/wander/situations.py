"""Which of the situations that matter a transition is: what a random run must have been through to count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from replaylife.lifecycle.actions import (
    Abort,
    Admit,
    Cancel,
    Draft,
    Execute,
    Finish,
    Forward,
    Retract,
    Schedule,
    Verify,
)
from replaylife.lifecycle.events import (
    Accepted,
    AdmissionRejected,
    Allocated,
    CheckpointCopied,
    CheckpointFolded,
    CopyAborted,
    CopyFinished,
    CopyRefused,
    Decoded,
    Drafted,
    Evicted,
    Matched,
    PlaceFreed,
    Published,
    PublishSkipped,
    Released,
    StateFolded,
    StepCommitted,
)
from replaylife.lifecycle.snapshot import Transition

SITUATIONS: dict[str, str] = {
    "fold-in-mid-ring": "a fold of fewer records than the ring has room for",
    "forced-fold": "a track point reached with the ring not full",
    "full-ring-fold": "a fold of a full ring",
    "cow-under-pressure": "an admission that evicts and takes a state to copy",
    "hit": "an admission that takes a cached state",
    "tombstone-hit-again": "a node without a state takes one",
    "retract-with-a-pending-ring": "a request retracted with records in its ring",
    "leave-before-the-copy": "a request retracted or aborted before its copy-on-write has run",
    "donation-onto-a-state": "a finished request's key has a state already",
    "checkpoint-onto-a-state": "a running request's key has a state already",
    "rejected-admission": "an admission rolled back for want of a slot or of tokens",
    "rejected-tried-again": "an admission of a request that was rejected before",
    "split": "a prompt diverges inside an edge",
    "multi-row-forward": "a step of two decode rows or more",
    "forward-evicts": "a step that makes room first",
    "mixed-step": "decode rows and prefill chunks in one step",
    "padding": "more rows in the batch than requests",
    "row-moved": "a request decodes in another row than before, because one has left",
    "finish-in-flight": "a finish with a step of the request in flight",
    "abort-in-flight": "an abort with a step of the request in flight",
    "retract-in-flight": "a retraction with a step of the request in flight",
    "overshoot-discarded": "a step commits for a request that has ended before",
    "two-in-flight": "a step scheduled before the one before it has committed",
    "checkpoint-stamped": "a track slot gets a stamp",
    "stamped-slot-donated": "the tree takes a request's track slot",
    "second-slot-taken": "a lazy request takes a second track slot",
    "overwritten-in-place": "a lazy request overwrites its only track slot",
    "branch-checkpoint": "a checkpoint at a branch point is published",
    "block-published": "a block is published",
    "window-kept-whole": "every token of a verify window is kept",
    "window-rejected-in-part": "a part of a verify window is rejected",
    "window-thrown-away": "a verify window whose request has ended meanwhile",
    "window-behind-records": "a verify window behind records that are pending",
    "several-windows": "a verify step of two rows or more",
    "room-made-for-a-window": "a fold because a verify window does not fit in the ring",
    "checkpoint-inside-a-window": "a track point among the kept tokens of a verify window",
    "offload-arrived": "a copy of a node's state arrives in host memory",
    "load-arrived": "a copy of a node's state arrives back in a slot",
    "hit-in-host-memory": "an admission that loads a node's copy from host memory",
    "copy-failed": "a copy in flight is aborted",
    "copy-refused": "a copy that finds no place, or no slot",
    "evicted-beside-a-copy": "states are evicted while a copy is in flight",
    "backed-up": "a retracted request's state is kept in host memory",
    "restored": "a request gets back what it left outside the pool",
    "transferred": "a request's checkpoint arrives in another pool",
    "waiting-cancelled": "a waiting request goes away with what it left outside the pool",
    "session-ended": "the end of a conversation releases its branch",
}

_ENDS = {Finish: "finish-in-flight", Abort: "abort-in-flight", Retract: "retract-in-flight"}


def situations_of(t: Transition) -> set[str]:
    """Return the names of the situations that a transition is, by itself."""
    happened = {type(event) for event in t.events}
    found: set[str] = set()
    if isinstance(t.action, Forward | Schedule):
        found.update(_of_step(t, t.action))
    if t.changed is None or t.changed.requests:
        found.update(_of_stamps(t))
    if t.changed is None or t.changed.nodes:
        found.update(_of_shape(t))
    for kinds, look in _ONLY_AFTER.items():
        if not happened.isdisjoint(kinds):
            found.update(look(t))
    if isinstance(t.action, Admit):
        found.update(_of_admission(t))
    elif isinstance(t.action, Finish | Abort | Retract) or Released in happened:
        found.update(_of_leaving(t))
    return found


def _of_step(t: Transition, action: Forward | Schedule) -> Iterator[str]:
    if len(action.rows) > 1:
        yield "multi-row-forward"
    if action.rows and action.chunks:
        yield "mixed-step"
    if action.rows and (action.pad_to or 0) > len(action.rows):
        yield "padding"
    if any(isinstance(event, Evicted) for event in t.events):
        yield "forward-evicts"
    if t.before.in_flight:
        yield "two-in-flight"


def _of_commits(t: Transition) -> Iterator[str]:
    if any(isinstance(event, StepCommitted) and event.discarded for event in t.events):
        yield "overshoot-discarded"


def _of_folds(t: Transition) -> Iterator[str]:
    for event in t.events:
        if not isinstance(event, StateFolded):
            continue
        full = event.records == t.after.ring_length
        yield "full-ring-fold" if full else "fold-in-mid-ring"
        if isinstance(t.action, Forward | Execute) and not full:
            yield "forced-fold"


def _of_admission(t: Transition) -> Iterator[str]:
    if not isinstance(t.action, Admit):
        return
    kinds = {type(event) for event in t.events}
    if AdmissionRejected in kinds:
        yield "rejected-admission"
    if any(isinstance(event, Matched) and event.node is not None for event in t.events):
        yield "hit"
        if Evicted in kinds:
            yield "cow-under-pressure"


def _of_leaving(t: Transition) -> Iterator[str]:
    if isinstance(t.action, Finish | Abort | Retract):
        name = t.action.request
        if any(name == row for step in t.before.in_flight for row, _, _ in step.rows):
            yield _ENDS[type(t.action)]
    for event in t.events:
        if not isinstance(event, Released):
            continue
        if event.retracted and event.pending:
            yield "retract-with-a-pending-ring"
        was = t.before.request(event.request)
        if was is not None and was.pending_cow is not None:
            yield "leave-before-the-copy"


def _of_tracking(t: Transition) -> Iterator[str]:
    before = {view.id: view for view in t.before.requests}
    for event in t.events:
        match event:
            case Allocated(holder=holder) if holder.startswith("second track slot"):
                yield "second-slot-taken"
            case CheckpointCopied(purpose="publish", request=name, dst=dst):
                if name in before and before[name].track_slots == (dst,):
                    yield "overwritten-in-place"
            case Published(request=name, slot=slot):
                if name in before and slot in before[name].track_slots:
                    yield "stamped-slot-donated"


def _of_stamps(t: Transition) -> Iterator[str]:
    for now in t.after.requests:
        if now.stamps:
            was = t.before.request(now.id)
            if was is not now and set(now.stamps) - set(() if was is None else was.stamps):
                yield "checkpoint-stamped"


def _of_publishing(t: Transition) -> Iterator[str]:
    for event in t.events:
        if isinstance(event, Published) and event.purpose in ("branch", "block"):
            yield "branch-checkpoint" if event.purpose == "branch" else "block-published"


def _of_tree(t: Transition) -> Iterator[str]:
    before = {node.id: node for node in t.before.nodes}
    ended = {view.id for view in t.before.requests} - {view.id for view in t.after.requests}
    for event in t.events:
        if isinstance(event, Published) and event.node in before and before[event.node].state is None:
            yield "tombstone-hit-again"
        if isinstance(event, PublishSkipped) and event.node is not None:
            yield "donation-onto-a-state" if event.request in ended else "checkpoint-onto-a-state"


def _of_shape(t: Transition) -> Iterator[str]:
    before = {node.id: node for node in t.before.nodes}
    if any(node.id in before and node.parent != before[node.id].parent for node in t.after.nodes):
        yield "split"


def _of_windows(t: Transition) -> Iterator[str]:
    if isinstance(t.action, Verify | Draft):
        if len(t.action.rows) > 1:
            yield "several-windows"
        if any(isinstance(event, Drafted) and event.cursor_before for event in t.events):
            yield "window-behind-records"
        windows = {event.slot: event for event in t.events if isinstance(event, Drafted)}
        length = t.after.ring_length or 0
        if any(event.cursor_before + len(event.tokens) > length for event in windows.values()):
            yield "room-made-for-a-window"
    for event in t.events:
        match event:
            case Accepted():
                whole = len(event.tokens) == event.window
                yield "window-kept-whole" if whole else "window-rejected-in-part"
            case CheckpointFolded():
                yield "checkpoint-inside-a-window"
            case StepCommitted(discarded=names):
                drafting = {view.id for view in t.before.requests if view.drafts}
                if drafting.intersection(names):
                    yield "window-thrown-away"


_ARRIVED = {
    "offload": "offload-arrived",
    "load": "load-arrived",
    "backup": "backed-up",
    "restore": "restored",
}


def _of_copies(t: Transition) -> Iterator[str]:
    for event in t.events:
        match event:
            case CopyFinished(kind=kind):
                yield _ARRIVED.get(kind, "transferred")
                if kind == "load" and isinstance(t.action, Admit):
                    yield "hit-in-host-memory"
            case CopyAborted():
                yield "copy-failed"
            case CopyRefused():
                yield "copy-refused"
            case Evicted(purpose="session"):
                yield "session-ended"
            case Evicted(purpose="state") if t.before.copies:
                yield "evicted-beside-a-copy"
            case PlaceFreed() if isinstance(t.action, Cancel):
                yield "waiting-cancelled"


_ONLY_AFTER: dict[frozenset[type], Callable[[Transition], Iterator[str]]] = {
    frozenset({StateFolded}): _of_folds,
    frozenset({StepCommitted}): _of_commits,
    frozenset({Published}): _of_publishing,
    frozenset({Published, PublishSkipped}): _of_tree,
    frozenset({Allocated, CheckpointCopied, Published}): _of_tracking,
    frozenset({Drafted, Accepted, CheckpointFolded, StepCommitted}): _of_windows,
    frozenset({CopyFinished, CopyAborted, CopyRefused, Evicted, PlaceFreed}): _of_copies,
}
"""What need not be looked for unless one of these has happened."""


class Coverage:
    """Counts actions by kind, and situations; some of those take more than one transition to see."""

    def __init__(self) -> None:
        self.actions: Counter[str] = Counter()
        self.situations: Counter[str] = Counter(dict.fromkeys(SITUATIONS, 0))
        self._rejected: set[str] = set()
        self._rows: list[str] = []

    def count(self, t: Transition) -> None:
        """Count one transition."""
        self.actions[type(t.action).__name__] += 1
        self.situations.update({*situations_of(t), *self._tried_again(t), *self._moved(t)})

    def _tried_again(self, t: Transition) -> Iterator[str]:
        if isinstance(t.action, Admit):
            if t.action.request in self._rejected:
                yield "rejected-tried-again"
            self._rejected.discard(t.action.request)
            self._rejected.update(e.request for e in t.events if isinstance(e, AdmissionRejected))

    def _moved(self, t: Transition) -> Iterator[str]:
        """Keep rows dense as a persistent batch does: the last one fills the place of one that leaves."""
        present = [event.request for event in t.events if isinstance(event, Decoded)]
        if not present:
            return
        kept, rows = set(present), list(self._rows)
        row = 0
        while row < len(rows):
            if rows[row] in kept:
                row += 1
            elif (last := rows.pop()) in kept:
                rows[row] = last
                yield "row-moved"
        self._rows = [*rows, *(name for name in present if name not in rows)]

    @property
    def total(self) -> int:
        """The actions counted."""
        return self.actions.total()
