"""Help with names that are not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST = 200  # characters of a list of names


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a clause that names the nearest valid name, or all of them where none is near."""
    known = sorted(names)
    close = get_close_matches(name[:100], known, n=1)  # its time grows with the square of the length
    if close:
        return f"; did you mean {close[0]!r}?"
    shown = ", ".join(known)
    if len(shown) > _LONGEST:
        kept = known[: shown[:_LONGEST].count(",")]
        shown = f"{', '.join(kept)} and {len(known) - len(kept)} more"
    return f"; known: {shown}" if known else ""
