"""What an engine looks like between two actions: plain, frozen, hashable data."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, NamedTuple, TypeAlias

from replaylife.lifecycle.actions import Action
from replaylife.lifecycle.events import CopyKind, Event, PlaceKind
from replaylife.lifecycle.plain import plain
from replaylife.pool import Fold, Record

OwnerKind: TypeAlias = Literal["free", "reserved", "tree", "request", "step", "copy"]
Phase: TypeAlias = Literal["prefill", "decode", "closing"]
MeasurementKind: TypeAlias = Literal["state", "logits", "witness", "untouched", "budget"]


class Owner(NamedTuple):
    """Who holds a slot: free list, nobody ever (slot 0), tree node, request, step or copy in flight."""

    kind: OwnerKind
    id: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.id}".rstrip()


@plain
class SlotView:
    """One slot of the pool.

    ``temporal``, ``conv`` and ``conv_checkpoint`` say which tokens each component has absorbed; ``ring``
    are the pending records ``[0, write_pos)``. ``write_pos`` is the host's cursor and
    ``device_write_pos`` the kernels'; both ``None`` with ReplaySSM off. ``written`` is the step that last
    wrote temporal. ``owners`` has one entry in a healthy pool.
    """

    index: int
    owners: tuple[Owner, ...]
    temporal: Fold
    conv: Fold
    conv_checkpoint: Fold | None
    ring: tuple[Record | None, ...]
    write_pos: int | None
    device_write_pos: int | None
    written: int


@plain
class NodeView:
    """One node of the radix tree.

    ``key`` covers ``[0, key.length)`` from the root, of which the node owns the key-value tokens
    ``[parent's length, key.length)``. ``state`` is the slot of its checkpoint, ``None`` for a tombstone
    or a split point. ``recency`` is a logical clock: larger is more recent. ``published`` is the step in
    which the tree took the state, ``first_page`` the first page of the node's own tokens.
    """

    id: int
    parent: int | None
    key: Fold
    kv_tokens: int
    state: int | None
    state_lock: int
    kv_lock: int
    recency: int
    published: int
    first_page: tuple[int, ...]


@plain
class RequestView:
    """One request.

    Tokens ``[0, scheduled)`` have been decided on, ``[0, executed)`` written to tensors, ``[0, committed)``
    seen by the host. ``tokens`` is the fold of the executed tokens. ``cached`` is the prefix taken from
    the tree, ``kv_tokens`` the key-value tokens the request itself owns, ``locked`` the node it pins.
    ``slot`` is its live slot, ``track_slots`` the others it owns; ``stamps`` says of some of them which
    tokens the checkpoint in them covers. ``pending_cow`` is the (source, destination) of a copy that has
    not run yet, ``copies`` how often it has. ``drafts`` are the tokens of an open verify window, the last
    ones executed, of which a part will be rejected; empty where none is open.
    """

    id: str
    phase: Phase
    prompt_len: int
    scheduled: int
    executed: int
    committed: int
    tokens: Fold
    cached: int
    slot: int | None
    track_slots: tuple[int, ...]
    stamps: tuple[tuple[int, Fold], ...]
    locked: int | None
    kv_tokens: int
    pending_cow: tuple[int, int] | None
    copies: int
    drafts: tuple[int, ...] = ()

    @property
    def slots(self) -> tuple[int, ...]:
        """Every slot that the request owns, its live one first."""
        return self.track_slots if self.slot is None else (self.slot, *self.track_slots)


@plain
class StepView:
    """A step that has not committed: (request, start, end) per row, and the slots it writes checkpoints to.

    ``executed_at`` is the action in which its tensors were written, ``None`` while it is only scheduled.
    """

    number: int
    rows: tuple[tuple[str, int, int], ...]
    copies: tuple[int, ...]
    executed_at: int | None


@plain
class PlaceView:
    """A place for one checkpoint outside the pool: in host memory (``host``) or another pool (``peer``).

    ``temporal`` and ``conv`` say which tokens the checkpoint in it has absorbed. ``owners``: the free list,
    the tree node whose copy it is, the retracted or transferred request, or a copy in flight. ``written`` is
    the step that last wrote it.
    """

    index: int
    owners: tuple[Owner, ...]
    temporal: Fold
    conv: Fold
    written: int


@plain
class CopyView:
    """A copy in flight, as events.CopyStarted tells it; ``locked`` is the node it pins."""

    kind: CopyKind
    of: str
    src: int
    dst: int
    locked: int | None


@plain
class WaitingView:
    """A request in the waiting queue whose checkpoint of ``tokens`` lies outside the pool."""

    id: str
    where: PlaceKind
    place: int
    tokens: Fold


@plain
class Measurement:
    """What a numeric check compared, and how far off it was.

    ``subject`` is ``node 4`` or ``request turn2``; ``component`` what of it (temporal, conv, logits, …);
    ``position`` the state's length, or the token position (from 0) that the logits belong to. ``error`` is
    Frobenius-relative for states and logits, a count of wrong records for the witness.
    """

    kind: MeasurementKind
    subject: str
    component: str
    position: int
    error: float
    tolerance: float
    detail: str = ""

    @property
    def exceeded(self) -> bool:
        """Whether the error is above the tolerance (NaN counts as above)."""
        return not self.error <= self.tolerance


@plain
class Snapshot:
    """The whole engine between two actions.

    ``ring_length`` is L, ``None`` with ReplaySSM off; lengths that are multiples of ``track_point`` are
    tracked; ``grid`` is what checkpoint lengths must be multiples of, ``None`` where they need not. ``lru``
    are the nodes that carry a state in the order of their eviction, ``in_flight`` the steps not yet
    committed, oldest first. ``measurements`` belong to the action just applied. ``host_places`` and
    ``peer_places`` are the places for checkpoints outside the pool, with their free lists; ``copies`` are in
    flight between a slot and a place, ``waiting`` the requests whose checkpoint lies in a place.
    """

    slots: tuple[SlotView, ...]
    nodes: tuple[NodeView, ...]
    requests: tuple[RequestView, ...]
    free_slots: tuple[int, ...]
    kv_capacity: int
    kv_free: int
    ring_length: int | None
    track_point: int
    grid: int | None
    lru: tuple[int, ...]
    in_flight: tuple[StepView, ...]
    measurements: tuple[Measurement, ...] = ()
    host_places: tuple[PlaceView, ...] = ()
    host_free: tuple[int, ...] = ()
    peer_places: tuple[PlaceView, ...] = ()
    peer_free: tuple[int, ...] = ()
    copies: tuple[CopyView, ...] = ()
    waiting: tuple[WaitingView, ...] = ()

    def node(self, node_id: int) -> NodeView | None:
        """Return the node with this id, or ``None``."""
        return next((node for node in self.nodes if node.id == node_id), None)

    def request(self, request_id: str) -> RequestView | None:
        """Return the request with this id, or ``None``."""
        return next((request for request in self.requests if request.id == request_id), None)

    def host_copy(self, node_id: int) -> PlaceView | None:
        """Return the place in host memory with the copy of a node's state, or ``None``."""
        owner = Owner("tree", str(node_id))
        return next((place for place in self.host_places if owner in place.owners), None)


@plain
class Changed:
    """Which views an action changed. Views outside it are the same objects as before."""

    slots: frozenset[int] = field(default_factory=frozenset)
    nodes: frozenset[int] = field(default_factory=frozenset)
    requests: frozenset[str] = field(default_factory=frozenset)


@plain
class Transition:
    """One applied action: step number (from 1), what was, what was done, what happened, what is."""

    step: int
    before: Snapshot
    action: Action
    events: tuple[Event, ...]
    after: Snapshot
    changed: Changed | None = None


@plain
class Violation:
    """One broken invariant.

    ``found`` and ``expected`` are the two sides in numbers; ``proof`` reads as a short proof that ends in
    the contradiction.
    """

    invariant: str
    subject: str
    found: str
    expected: str
    proof: tuple[str, ...]
