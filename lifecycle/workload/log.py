"""Reading a request log in Mooncake's JSON Lines format, line by line.

One request a line: ``timestamp`` (milliseconds), ``input_length`` and ``output_length`` (tokens),
``hash_ids``: one id per block of the input, the last of them perhaps cut short; equal ids mean that the
blocks and all before them are equal. Format: https://github.com/kvcache-ai/Mooncake (FAST25-release).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

BLOCK = 512
MAX_PROBLEMS = 20
_COUNTS = ("timestamp", "input_length", "output_length")


@dataclass(frozen=True, slots=True)
class Entry:
    """One request of a log; ``line`` is where it stands, from 1."""

    line: int
    timestamp: int
    input_length: int
    output_length: int
    hash_ids: tuple[int, ...]
    block: int = BLOCK

    @property
    def whole_blocks(self) -> int:
        """Blocks of the input that are not cut short."""
        return self.input_length // self.block

    def extends(self, earlier: Entry) -> bool:
        """Whether this prompt begins with all of ``earlier``'s and has room for its reply.

        Judged by whole blocks, of which ``earlier`` must have two: the first is the same system prompt in
        nearly every request of a log.
        """
        shared = earlier.whole_blocks
        return (
            shared >= 2
            and self.whole_blocks >= shared
            and self.hash_ids[shared - 1] == earlier.hash_ids[shared - 1]
            and self.input_length >= earlier.input_length + earlier.output_length
        )


class LogError(ValueError):
    """Lines that are no requests: (line, message), at most :data:`MAX_PROBLEMS` of them."""

    def __init__(self, problems: list[tuple[int, str]]) -> None:
        super().__init__("; ".join(f"line {line}: {message}" for line, message in problems))
        self.problems = problems

    def __reduce__(self) -> tuple[type[LogError], tuple[list[tuple[int, str]]]]:
        return type(self), (self.problems,)


def read_entries(lines: Iterable[str], block: int = BLOCK) -> Iterator[Entry]:
    """Yield the requests of a log; blank lines are passed over. One line is held at a time.

    Raises :class:`LogError` at the first bad line, with the bad ones among those that follow, and for a log
    without a request.
    """
    numbered = enumerate(lines, start=1)
    clock, last = -1, 1
    for number, line in numbered:
        last = number
        if not line.strip():
            continue
        entry = _entry(number, line, clock, block)
        if isinstance(entry, str):
            raise LogError([(number, entry), *_more_problems(numbered, clock, block)])
        clock = entry.timestamp
        yield entry
    if clock < 0:
        raise LogError([(last, "found no request up to here, expected one JSON object a line")])


def _more_problems(numbered: Iterator[tuple[int, str]], clock: int, block: int) -> Iterator[tuple[int, str]]:
    found = 1
    for number, line in numbered:
        entry = _entry(number, line, clock, block) if line.strip() else None
        if isinstance(entry, str):
            yield number, entry
            found += 1
            if found == MAX_PROBLEMS:
                return
        elif entry is not None:
            clock = entry.timestamp


def _entry(number: int, line: str, clock: int, block: int) -> Entry | str:
    """Return the request of a line, or what is wrong with the line."""
    try:
        told = json.loads(line)
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" starting at")
        return f"no JSON ({what} at column {error.colno}); expected one object a line"
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets without end
        return f"no JSON ({error}); expected one object a line"
    if not isinstance(told, dict):
        return f"found {type(told).__name__}, expected an object with {', '.join(_COUNTS)} and hash_ids"
    return _wrong(told, clock, block) or Entry(
        number,
        told["timestamp"],
        told["input_length"],
        told["output_length"],
        tuple(told["hash_ids"]),
        block,
    )


def _wrong(told: dict[str, Any], clock: int, block: int) -> str:
    for name in _COUNTS:
        least = 0 if name == "timestamp" else 1
        value = told.get(name)
        if type(value) is not int or value < least:
            return f"{name}: found {value!r}, expected a whole number of at least {least}"
    ids, needed = told.get("hash_ids"), -(-told["input_length"] // block)
    if not isinstance(ids, list) or any(type(i) is not int or i < 0 for i in ids):
        return f"hash_ids: found {str(ids)[:60]}, expected a list of whole numbers"
    if len(ids) != needed:
        return (
            f"hash_ids: found {len(ids)}, expected {needed}, one per block of {block} for "
            f"{told['input_length']} tokens; another block size is --block"
        )
    if told["timestamp"] < clock:
        return (
            f"timestamp: found {told['timestamp']}, expected at least {clock}: a log is in order of arrival"
        )
    return ""
