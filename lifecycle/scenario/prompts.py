"""Where a scenario's prompt tokens come from: named texts, drawn once from the seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

from replaylife.lifecycle.scenario.fields import Prompt, Text


@lru_cache(maxsize=1024)
def text(name: str, tokens: int, vocab: int, seed: int) -> tuple[int, ...]:
    """Return the first ``tokens`` tokens of a named text; the same name gives the same tokens."""
    source = random.Random(f"{seed}/{name}")
    return tuple(source.randrange(vocab) for _ in range(tokens))


def prompt_tokens(prompt: Prompt, owner: str, vocab: int, seed: int) -> tuple[int, ...]:
    """Return what a turn adds: its named texts, and tokens of ``owner`` alone for each plain number."""
    segments: Sequence[int | Text] = prompt if isinstance(prompt, list) else [prompt]
    tokens: list[int] = []
    for index, segment in enumerate(segments):
        if isinstance(segment, Text):
            tokens.extend(text(f"text {segment.text}", segment.tokens, vocab, seed))
        else:
            tokens.extend(text(f"request {owner} {index}", segment, vocab, seed))
    return tuple(tokens)
