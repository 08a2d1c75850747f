"""Why another engine differs from ours: defects of theirs, and policies that their code states.

A rule says which differences it explains from the values on both sides, never from a scenario's name, so that
a new difference in an old scenario stays unexplained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from replaylife.conformance import Comparison, Difference, Position
from replaylife.pool import Fold

Kind: TypeAlias = Literal["defect", "policy"]


@dataclass(frozen=True, slots=True)
class Known:
    """One explanation; ``where`` is the heading of docs/findings.md or docs/sglang.md that has more."""

    id: str
    kind: Kind
    claim: str
    where: str
    explains: Callable[[Comparison, Difference], bool]


def explanation(comparison: Comparison, difference: Difference) -> Known | None:
    """Return the first rule that explains a difference, ``None`` if none does."""
    return next((known for known in KNOWN if known.explains(comparison, difference)), None)


def _truncates(comparison: Comparison) -> bool:
    return comparison.cache.strategy == "no_buffer" and comparison.cache.replayssm


def _mixed(comparison: Comparison, difference: Difference) -> bool:
    """From the step on in which decode rows with pending records rode in an extend forward."""
    since = comparison.theirs.mixed_since
    return since is not None and difference.step >= since


def _conv_ahead(comparison: Comparison, difference: Difference) -> bool:
    """Temporal at the key on both sides; the convolution there on ours, further on theirs."""
    if difference.column != "positions" or not _truncates(comparison):
        return False
    return any(
        ours[:2] == (key, key) and theirs.temporal == key and theirs.conv.length > key.length
        for key, ours, theirs in _positions(comparison, difference)
    )


def _positions(comparison: Comparison, difference: Difference) -> Iterator[tuple[Fold, Position, Position]]:
    """Yield key, our position and theirs, of the keys that the difference can be about."""
    ours, theirs = comparison.ours.states, comparison.theirs.states
    for key in ours.keys() & theirs.keys():
        if (key.length, theirs[key].step) == (difference.key, difference.step):
            yield key, ours[key], theirs[key]


def _fold_only(comparison: Comparison, difference: Difference) -> bool:
    """No state at a track point of a decoding request, or fewer evictions, because nothing is kept there."""
    cache = comparison.cache
    if cache.strategy != "no_buffer" or cache.track != "snapshot":
        return False
    if difference.column == "keys" and difference.theirs == "none":
        return difference.key is not None and difference.key % cache.track_point == 0
    passed = any(key.length >= cache.track_point for key in comparison.ours.states)
    fewer = comparison.theirs.evicted[0] < comparison.ours.evicted[0]
    return difference.column == "evictions" and passed and fewer


def _grid_from_prefix(comparison: Comparison, difference: Difference) -> bool:
    """A chunk's checkpoint on a grid counted from the chunk's start on theirs, from token 0 on ours."""
    cache = comparison.cache
    if difference.column != "keys" or cache.strategy == "no_buffer" or difference.key is None:
        return False
    ours = {position.step: key.length for key, position in comparison.ours.states.items()}
    theirs = {position.step: key.length for key, position in comparison.theirs.states.items()}
    mine, other = ours.get(difference.step), theirs.get(difference.step)
    return mine is not None and other is not None and mine % cache.grid == 0 and other % cache.grid != 0


def _branch_instead(comparison: Comparison, difference: Difference) -> bool:
    """Of two checkpoints that a chunk leaves on ours, at a branch and its end, theirs has the branch's."""
    if difference.column != "keys" or difference.theirs != "none" or comparison.cache.strategy == "no_buffer":
        return False
    same_step = [key for key, at in comparison.ours.states.items() if at.step == difference.step]
    shared = [key.length for key in same_step if key in comparison.theirs.states]
    return len(same_step) == 2 and len(shared) == 1 and shared[0] < (difference.key or 0)


def _kv_outlives(comparison: Comparison, difference: Difference) -> bool:
    """The same number of states evicted, and fewer key-value tokens: leaves without a state keep theirs."""
    (ours_states, ours_kv), (states, kv) = comparison.ours.evicted, comparison.theirs.evicted
    return difference.column == "evictions" and states == ours_states and kv < ours_kv


KNOWN = (
    Known(
        "mixed-chunk-skips-ring",
        "defect",
        "a decode row in a mixed forward runs from temporal as if its ring were empty",
        "findings.md",
        _mixed,
    ),
    Known(
        "conv-window-ahead",
        "defect",
        "the donated window stands at the uncut length, temporal and key at the last fold",
        "findings.md",
        _conv_ahead,
    ),
    Known(
        "fold-only",
        "policy",
        "no_buffer folds at a track point and keeps no checkpoint (track: fold-only)",
        "sglang.md",
        _fold_only,
    ),
    Known(
        "grid-from-prefix",
        "policy",
        "the grid of chunk checkpoints is counted from the chunk's start",
        "sglang.md",
        _grid_from_prefix,
    ),
    Known(
        "one-checkpoint-per-chunk",
        "policy",
        "a chunk leaves one checkpoint: a branch point takes the place of the chunk's end",
        "sglang.md",
        _branch_instead,
    ),
    Known(
        "kv-outlives-state",
        "policy",
        "only key-value decides whether a node stays: a leaf without a state keeps its tokens",
        "sglang.md",
        _kv_outlives,
    ),
)
