"""What lies outside the pool, in words: places in host memory and at a peer, copies in flight, who waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from rich.text import Text

from replaylife.lifecycle.events_outside import Copy, copy_way
from replaylife.lifecycle.snapshot import Owner, PlaceView, Snapshot
from replaylife.view.look import BAD, DIM, RING, STATE, Look, Signs, clean, shorten

KINDS: tuple[Literal["host", "peer"], ...] = ("host", "peer")


def places_in_use(snapshot: Snapshot) -> Iterator[tuple[str, PlaceView]]:
    """Yield the places that hold something, or that nobody owns: ``host place 0`` and its view."""
    for where in KINDS:
        for place in getattr(snapshot, f"{where}_places"):
            if [owner.kind for owner in place.owners] != ["free"]:
                yield f"{where} place {place.index}", place


def owners_of(owners: Iterable[Owner]) -> str:
    """Name who owns a slot or a place."""
    words = (clean(str(owner)).removeprefix("request ").replace("tree ", "node ") for owner in owners)
    return ", ".join(words) or "nobody"


def place_lines(after: Snapshot, before: Snapshot, look: Look, room: int, broken: set[str]) -> list[Text]:
    """List the places in use below the slots, in the same columns; ``broken`` are subjects of violations."""
    was = dict(places_in_use(before))
    lines = []
    for name, place in places_in_use(after):
        style = BAD if len(place.owners) != 1 or name in broken else "none"
        sign = " " if was.get(name) == place else "~" if name in was else "+"
        owner = f"{shorten(look.signs, owners_of(place.owners), room):<{room}}"
        text = Text.assemble((sign, f"bold {RING}"), (f"{name[0] + str(place.index):>3} {owner} ", style))
        text.append(f"{place.temporal.length:>5}", STATE).append(f" {place.conv.length:>5} ")
        lines.append(text.append(name.partition(" ")[0], DIM))
    return lines


def free_places(snapshot: Snapshot) -> Iterator[str]:
    """Say how many places are free: ``host 3 of 4 free``."""
    for where in KINDS:
        places, free = getattr(snapshot, f"{where}_places"), getattr(snapshot, f"{where}_free")
        if places:
            yield f"{where} {len(free)} of {len(places)} free"


def way_of(copy: Copy, signs: Signs) -> str:
    """Say between which slot and place a copy goes, and which way."""
    return f" {signs.arrow} ".join(copy_way(copy))


def outside_sentences(snapshot: Snapshot, signs: Signs) -> Iterator[str]:
    """Say which copies are in flight, and which requests wait with their checkpoint outside the pool."""
    for copy in snapshot.copies:
        pins = "" if copy.locked is None else f", pins node {copy.locked}"
        yield f"copy in flight: {copy.kind} of {clean(copy.of)}, {way_of(copy, signs)}{pins}"
    for view in snapshot.waiting:
        yield f"{clean(view.id)} waits: {view.tokens.length} tokens in {view.where} place {view.place}"
