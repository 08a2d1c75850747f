"""Small logs, and a count of hits made from a log alone, without tree, engine or runs."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import replaylife.lifecycle.workload as package
from replaylife.lifecycle.workload.conversation import Conversations, Turn
from replaylife.lifecycle.workload.log import Entry, read_entries

EXCERPT = Path(next(iter(package.__path__))) / "data" / "mooncake_conversation_300.jsonl"
BLOCK = 512


def line(
    timestamp: int = 0, blocks: Iterable[int] = (1, 2), cut: int = 100, output: int = 5, **over: Any
) -> str:
    """A request whose last block is cut to ``cut`` tokens."""
    ids = list(blocks)
    told = {
        "timestamp": timestamp,
        "input_length": (len(ids) - 1) * BLOCK + cut,
        "output_length": output,
        "hash_ids": ids,
    }
    return json.dumps(told | over)


def turns(*lines: str) -> list[Turn]:
    return list(Conversations(read_entries(lines)))


def excerpt(limit: int, start: int = 0) -> list[str]:
    return EXCERPT.read_text(encoding="utf-8").splitlines()[start : start + limit]


@cache
def talks() -> list[str]:
    """Requests of the excerpt that extend an earlier one, those that they extend, and a few others."""
    lines = excerpt(300)
    later = turns(*lines)
    chosen = {turn.entry.line for turn in later if turn.continues is not None}
    chosen |= {turn.continues for turn in later if turn.continues is not None}
    return [text for number, text in enumerate(lines, start=1) if number in chosen or number % 40 == 0]


class Plain:
    """A log read in the plainest way: every request an array of token ids, no windows, no runs."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.rows = [json.loads(text) for text in lines]
        self._fresh = count(1 << 40)
        self.prompts: dict[int, array[int]] = {}
        for number in reversed(range(len(self.rows))):
            self.prompts[number] = self._prompt(number)
        self.texts = [self._text(number) for number in range(len(self.rows))]

    def later(self, number: int) -> int | None:
        """The first later request that begins with this one's whole blocks and has room for its reply."""
        row = self.rows[number]
        whole = row["hash_ids"][: row["input_length"] // BLOCK]
        if len(whole) < 2:
            return None
        for other in range(number + 1, len(self.rows)):
            ids, length = self.rows[other]["hash_ids"], self.rows[other]["input_length"]
            fits = length >= row["input_length"] + row["output_length"]
            if fits and ids[: length // BLOCK][: len(whole)] == whole:
                return other
        return None

    def _prompt(self, number: int) -> array[int]:
        row = self.rows[number]
        tokens = array("q", (b * BLOCK + j for b in row["hash_ids"] for j in range(BLOCK)))[
            : row["input_length"]
        ]
        other = self.later(number)
        return tokens if other is None else self.prompts[other][: len(tokens)]

    def _text(self, number: int) -> array[int]:
        row = self.rows[number]
        total = row["input_length"] + row["output_length"]
        other = self.later(number)
        if other is not None:
            return self.prompts[other][:total]
        return self.prompts[number] + array("q", (next(self._fresh) for _ in range(row["output_length"])))


def hits_counted_alone(plain: Plain, *, chunk: int, track: int, ring: int, finish: str) -> Iterator[int]:
    """Yield the tokens that each request reuses: unlimited slots, one request at a time, ``no_buffer``.

    Every state is written down as the hash of the tokens it stands for. A request leaves one at the end of
    each chunk, at each track point that it decodes past, and at its last fold (or at its end with
    ``fold``).
    """
    states: set[tuple[int, bytes]] = set()
    lengths: set[int] = set()
    for row, text in zip(plain.rows, plain.texts, strict=True):
        prompt, executed = row["input_length"], row["input_length"] + row["output_length"] - 1
        candidates = sorted(n for n in lengths if n < prompt)
        found = [n for n, digest in _digests(text, candidates) if (n, digest) in states]
        hit = max(found, default=0)
        yield hit
        left = {*range(hit + chunk, prompt, chunk), prompt}
        left |= {n for n in range(prompt + 1, executed + 1) if n % track == 0}
        left.add(executed if finish == "fold" else _last_fold(prompt, executed, track, ring))
        states |= set(_digests(text, sorted(left)))
        lengths |= left


def _last_fold(prompt: int, executed: int, track: int, ring: int) -> int:
    folded = prompt
    for length in range(prompt + 1, executed + 1):
        if length - folded == ring or length % track == 0:
            folded = length
    return folded


def _digests(text: array[int], lengths: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    digest, at = hashlib.blake2b(digest_size=16), 0
    for length in lengths:
        digest.update(text[at:length].tobytes())
        at = length
        yield length, digest.digest()


def entries(*lines: str) -> list[Entry]:
    return list(read_entries(lines))
