"""The views of what lies outside the pool: places, copies in flight, requests that wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from replaylife.lifecycle.events import PlaceKind
from replaylife.lifecycle.host_tier import HostTier
from replaylife.lifecycle.snapshot import CopyView, Owner, PlaceView, WaitingView


class OutsideViews:
    """Builds them anew each time and keeps the old objects where nothing has changed.

    Owners are read off free lists, tree, waiting requests and copies in flight, never booked separately.
    """

    def __init__(self, tier: HostTier) -> None:
        self._tier = tier
        self._known: dict[str, Any] = {}

    def take(self) -> dict[str, Any]:
        """Return the fields of a snapshot about what lies outside the pool."""
        tier = self._tier
        if tier.host is None and tier.peer is None:
            return {}
        copies = tuple(_view_copy(tier, of) for of in tier.copies)
        waiting = tuple(WaitingView(name, w.where, w.place, w.fold) for name, w in tier.waiting.items())
        self._keep("host_places", tuple(self._places("host")))
        self._keep("peer_places", tuple(self._places("peer")))
        self._keep("copies", copies)
        self._keep("waiting", waiting)
        self._keep("host_free", () if tier.host is None else tier.host.free_list)
        self._keep("peer_free", () if tier.peer is None else tier.peer.free_list)
        return dict(self._known)

    def _keep(self, name: str, views: tuple[Any, ...]) -> None:
        """Replace only what differs, so that views of what did not change stay the same objects."""
        old = self._known.get(name, ())
        if views != old:
            known = {view: view for view in old}
            self._known[name] = tuple(known.get(view, view) for view in views)

    def _places(self, where: PlaceKind) -> Iterable[PlaceView]:
        places = self._tier.host if where == "host" else self._tier.peer
        if places is None:
            return
        owners = self._owners(where)
        for index, kept in enumerate(places.places):
            held = (*(Owner("free") for place in places.free_list if place == index), *owners.get(index, ()))
            yield PlaceView(index, held, kept.temporal, kept.conv, kept.written)

    def _owners(self, where: PlaceKind) -> dict[int, tuple[Owner, ...]]:
        """Who holds each place, the free list aside: nodes, then waiting requests, then copies in flight."""
        tier = self._tier
        held: list[tuple[int, Owner]] = []
        if where == "host":
            nodes = sorted(
                (node.id, node.host) for node in tier.store.tree.host_nodes() if node.host is not None
            )
            held += [(host, Owner("tree", str(node))) for node, host in nodes]
        held += [
            (w.place, Owner("request", name)) for name, w in sorted(tier.waiting.items()) if w.where == where
        ]
        kind = "offload" if where == "host" else "transfer"
        held += [(c.dst, Owner("copy", of)) for of, c in sorted(tier.copies.items()) if c.kind == kind]
        owners: dict[int, tuple[Owner, ...]] = {}
        for place, owner in held:
            owners[place] = (*owners.get(place, ()), owner)
        return owners


def _view_copy(tier: HostTier, of: str) -> CopyView:
    copy = tier.copies[of]
    return CopyView(copy.kind, of, copy.src, copy.dst, None if copy.locked is None else copy.locked.id)
