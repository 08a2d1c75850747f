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


class Bytes(click.ParamType):
    """A number of bytes: ``24GiB``, ``500MB``, ``1048576``. One letter (``24G``) means the binary unit."""

    name = "bytes"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number of bytes; fail with what was found and what is expected."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", value)
        unit = None if match is None else UNITS.get(match[2].lower())
        if match is None or unit is None:
            self.fail(f"{value!r} is no number of bytes; write 24GiB, 500MB or 1048576", param, ctx)
        return int(float(match[1]) * unit)


def human(num_bytes: float) -> str:
    """Write bytes in the binary unit that leaves one to four digits before the point."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(num_bytes) < 1024:
            return f"{num_bytes:.0f} B" if unit == "B" else f"{num_bytes:.2f} {unit}"
        num_bytes /= 1024
    return f"{num_bytes:.2f} TiB"
