"""What can be wrong with a trace file."""

from __future__ import annotations


class TraceError(Exception):
    """A trace that cannot be read at all: no such file, not a trace, a newer version.

    ``line`` counts from 1 and is 0 where no line is to blame.
    """

    def __init__(self, path: str, line: int, message: str) -> None:
        self.path, self.line, self.message = path, line, message
        super().__init__(f"{path}:{line}: {message}" if line else f"{path}: {message}")


class TraceDamaged(TraceError):  # noqa: N818 - what came before it is good
    """A trace that can be read up to this line. All that came before has been handed out."""


class TraceExists(TraceError):  # noqa: N818 - a refusal, nothing has failed
    """A file that is not to be overwritten."""


class Malformed(Exception):  # noqa: N818 - a finding about data, turned into TraceDamaged by the reader
    """A value that is not what its place in the format asks for. ``place`` leads to it from the line."""

    def __init__(self, message: str, *place: str | int) -> None:
        self.message, self.place = message, place
        super().__init__(message)

    def inside(self, part: str | int) -> Malformed:
        """Return the same finding, seen from one level further out."""
        return Malformed(self.message, part, *self.place)

    def __str__(self) -> str:
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.place)
        return f"{where.lstrip('.')}: {self.message}" if where else self.message


def show(value: object) -> str:
    """Name a value that was found, shortened: it may be of any size."""
    if isinstance(value, dict | list):
        return f"an {'object' if isinstance(value, dict) else 'array'} of {len(value)}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
