"""What a fingerprint keeps of checkpoints outside the pool and of open verify windows."""

from __future__ import annotations

from typing import Any

from replaylife.lifecycle.explore.world import World
from replaylife.lifecycle.planned import Window
from replaylife.lifecycle.snapshot import PlaceView

_NORMALISED = {
    *(
        "_action",
        "_grid",
        "published",
        "rejected",
        "retracted",
        "capacity",
        "num_taken",
        "_clock",
        "_next_id",
    ),
    *("_slots", "num_kv_tokens", "page_size", "_heap", "_queued", "step", "tensors", "write_pos", "logging"),
    *("_load_holds", "_known", "queue", "waiting"),
    *("_free", "num_slots", "_number", "_order", "_vocab", "_ring_length", "_track_point", "_tracks", "grid"),
}


class Extras:
    """Attributes that parts of the engine have beside those known here: kept as they are."""

    def __init__(self, world: World) -> None:
        found = [(part, name) for part, names in world.memento.names() for name in names]
        self._those = [(part, name) for part, name in found if name not in _NORMALISED]

    def read(self) -> tuple[str, ...]:
        """Return their values, as text."""
        return tuple([repr(getattr(part, name)) for part, name in self._those])


def outside(world: World, keys: dict[int, tuple[int, ...]]) -> tuple[Any, ...]:
    """Places outside the pool, by number, what is on its way there, and who waits; nodes by their keys.

    What lies in a free place, or in the target of a copy that has not arrived, is written before it is read.
    """
    snap = world.snapshot

    def held(places: tuple[PlaceView, ...]) -> tuple[Any, ...]:
        return tuple(
            (tuple((o.kind, _of(o.id, keys)) for o in p.owners), tuple(p.temporal), tuple(p.conv))
            if any(owner.kind in ("tree", "request") for owner in p.owners)
            else tuple((o.kind, _of(o.id, keys)) for o in p.owners)
            for p in places
        )

    copies = tuple(
        (
            c.kind,
            _of(c.of, keys),
            None if c.kind == "load" else c.dst,
            None if c.locked is None else keys[c.locked],
        )
        for c in snap.copies
    )
    waiting = tuple((w.id, w.where, w.place, tuple(w.tokens)) for w in snap.waiting)
    return held(snap.host_places), held(snap.peer_places), snap.host_free, snap.peer_free, copies, waiting


def _of(name: str, keys: dict[int, tuple[int, ...]]) -> Any:
    """Name a node by its key: ``4`` or ``node 4``; anybody else by name."""
    number = name.removeprefix("node ")
    return keys.get(int(number), number) if number.isdigit() else name


def window_of(window: Window | None) -> tuple[int, ...]:
    """A verify window by numbers; its tokens are the request's last ones."""
    if window is None:
        return ()
    return window.keep, window.records, len(window.tokens), window.num_confirmed
