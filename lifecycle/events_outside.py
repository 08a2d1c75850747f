"""What happened to checkpoints outside the pool, and to requests that wait for their return."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from replaylife.lifecycle.plain import plain

CopyKind: TypeAlias = Literal["offload", "load", "transfer", "backup", "restore"]
PlaceKind: TypeAlias = Literal["host", "peer"]
Place: TypeAlias = tuple[PlaceKind, int]


@plain
class CopyStarted:
    """A copy of a checkpoint between a slot and a place outside the pool has begun; nothing is written yet.

    ``of`` is ``node 4`` or ``request a``. ``offload`` and ``transfer`` go from slot ``src`` to place ``dst``,
    ``load`` from place ``src`` to slot ``dst``. ``components`` are the tensors listed.
    """

    kind: CopyKind
    of: str
    src: int
    dst: int
    components: tuple[str, ...]


@plain
class CopyFinished:
    """A copy has arrived: ``dst`` covers ``[0, length)``. ``pending`` records were in the source's ring.

    ``backup`` and ``restore`` are those of a retracted request, begun and finished in one action; ``place``
    says where outside the pool the other end is. ``components`` are the tensors that went.
    """

    kind: CopyKind
    of: str
    src: int
    dst: int
    pending: int
    length: int
    components: tuple[str, ...]
    place: PlaceKind = "host"


@plain
class CopyAborted:
    """A copy in flight failed; nothing is claimed of it."""

    kind: CopyKind
    of: str
    src: int
    dst: int


class Copy(Protocol):
    """A copy of a checkpoint, in flight or told of by an event."""

    @property
    def kind(self) -> CopyKind:
        """Why it goes, and so which way."""
        ...

    @property
    def src(self) -> int:
        """The slot or place it is made from."""
        ...

    @property
    def dst(self) -> int:
        """The slot or place it fills."""
        ...


def copy_ends(copy: Copy) -> tuple[int, Place]:
    """Return the slot and the place between which a copy goes."""
    where = copy.place if isinstance(copy, CopyFinished) else place_of(copy.kind)
    return (copy.dst, (where, copy.src)) if inward(copy.kind) else (copy.src, (where, copy.dst))


def copy_way(copy: Copy) -> tuple[str, str]:
    """Name where a copy comes from and where it goes: ``slot 2`` and ``host place 0``."""
    slot, (where, index) = copy_ends(copy)
    ends = f"slot {slot}", f"{where} place {index}"
    return ends[::-1] if inward(copy.kind) else ends


def from_to(copy: Copy) -> str:
    """Name both ends: ``from slot 2 to host place 0``."""
    return "from {} to {}".format(*copy_way(copy))


def place_of(kind: CopyKind) -> PlaceKind:
    """Return where outside the pool a copy of this kind goes, or comes from."""
    return "peer" if kind == "transfer" else "host"


def inward(kind: CopyKind) -> bool:
    """Whether a copy of this kind fills a slot of the pool."""
    return kind in ("load", "restore")


@plain
class CopyRefused:
    """A copy could not begin: there is no place, or no slot, to copy to. Nothing is held for it."""

    kind: CopyKind
    of: str
    reason: str


@plain
class PlaceFreed:
    """A place outside the pool returned to its free list."""

    place: PlaceKind
    index: int
    reason: str


@plain
class Cancelled:
    """A request in the waiting queue went away."""

    request: str
