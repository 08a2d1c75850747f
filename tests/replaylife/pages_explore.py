"""The generated parts of the explorer's page: what its tests pin."""

from __future__ import annotations

from collections.abc import Iterator

from ..lifecycle.explore_pins import CANNOT, EXACT, MEDIUM_STATES, SHORTEST, SHOWN, STATES

Rows = tuple[list[str], list[list[str]]]


def scopes() -> Rows:
    """Every small and medium scope, with the counts of its states."""
    rows = [
        [f"`{name}`", f"{states:,}", f"{EXACT[name]:,}" if name in EXACT else "", f"{moves:,}", str(depth)]
        for name, (states, moves, depth) in {**STATES, **MEDIUM_STATES}.items()
    ]
    return ["scope", "states", "without symmetry", "transitions", "depth"], rows


def shortest() -> Rows:
    """Every fault that a scope can express, with its shortest way."""
    rows = [
        [f"[`{fault}`](faults.md#{fault})", f"`{name}`", str(length), "yes" if fault in SHOWN else ""]
        for fault, (name, length) in SHORTEST.items()
    ]
    return ["fault", "scope", "actions", "wrong logits"], rows


def inexpressible() -> Iterator[str]:
    """The faults that no scope can express, and why."""
    for fault, why in CANNOT.items():
        yield f"- [`{fault}`](faults.md#{fault}): {why}"
