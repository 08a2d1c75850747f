"""Bytes as people write and read them."""

from __future__ import annotations

import re

import click

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
    "k": 2**10,
    "m": 2**20,
    "g": 2**30,
    "t": 2**40,
}


def num_bytes(text: str) -> int:
    """Read ``24GiB``, ``500MB`` or ``1048576``; one letter (``24G``) means the binary unit.

    Raises ``click.BadParameter`` saying what was found and what is expected.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    unit = None if match is None else UNITS.get(match[2].lower())
    if match is None or unit is None:
        raise click.BadParameter(f"{text!r} is no number of bytes; write 24GiB, 500MB or 1048576")
    return int(float(match[1]) * unit)


def human(size: float) -> str:
    """Write bytes in the binary unit that leaves one to four digits before the point."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1024
    return f"{size:.2f} TiB"
