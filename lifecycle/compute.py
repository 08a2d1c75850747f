"""What turns tokens into next tokens: the interface, and the ledger-only stand-in without tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from replaylife.lifecycle.batch import Batch, WindowBatch
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.snapshot import Changed, Measurement, Snapshot
from replaylife.pool import Fold


class Compute(Protocol):
    """Runs forwards for the engine and, afterwards, measures what the tensors hold."""

    def prefill(self, request: Request, slot: int, start: int, end: int) -> int:
        """Run prompt tokens ``[start, end)`` into ``slot``; return the token sampled at the end."""
        ...

    def decode(self, batch: Batch) -> list[int]:
        """Run one decode step; return the sampled token of each real row, in row order."""
        ...

    def draft(self, request: Request, window: int, keep: int) -> tuple[int, ...]:
        """Return the tokens of a verify window: the sampled one, then drafts, ``keep - 1`` of them right."""
        ...

    def verify(self, batch: WindowBatch) -> list[tuple[int, ...]]:
        """Run one verify step; return, per row in order, what is sampled after each token of its window."""
        ...

    def measure(self, after: Snapshot, changed: Changed) -> tuple[Measurement, ...]:
        """Compare what the last action changed with the oracle (or the witness with the ledger)."""
        ...

    def cold_reply(self, prompt: Sequence[int], length: int) -> tuple[int, ...] | None:
        """Return the first ``length`` reply tokens of a run that reused nothing; ``None`` if unknown."""
        ...


def drafted(sampled: int, reply: Sequence[int], keep: int, vocab: int) -> tuple[int, ...]:
    """Return a verify window: ``sampled``, then ``reply``, made wrong from place ``keep`` on.

    ``reply`` is what the model will sample after ``sampled``. A wrong draft is the next token id: of the
    window one token is right for sure, and ``keep - 1`` drafts are.
    """
    right, wrong = reply[: keep - 1], reply[keep - 1 :]
    return (sampled, *right, *((token + 1) % vocab for token in wrong))


class HashCompute:
    """Samples each next token as a hash of the prefix, so that ledger-only runs have replies too."""

    def __init__(self, vocab: int) -> None:
        self._vocab = vocab

    def prefill(self, request: Request, slot: int, start: int, end: int) -> int:  # noqa: ARG002
        """Return the hash of tokens ``[0, end)``."""
        return next_token(request.absorbed.after(request.tokens[start:end]), self._vocab)

    def decode(self, batch: Batch) -> list[int]:
        """Return the hash of each row's tokens up to and including this one."""
        return [next_token(row.request.absorbed.then(row.token), self._vocab) for row in batch.rows]

    def draft(self, request: Request, window: int, keep: int) -> tuple[int, ...]:
        """Draft from the hashes to come."""
        sampled = request.tokens[request.executed]
        absorbed, reply = request.absorbed.then(sampled), []
        for _ in range(window - 1):
            reply.append(next_token(absorbed, self._vocab))
            absorbed = absorbed.then(reply[-1])
        return drafted(sampled, reply, keep, self._vocab)

    def verify(self, batch: WindowBatch) -> list[tuple[int, ...]]:
        """Return the hash after each token of each window."""
        return [self._after_each(row.request.absorbed, row.tokens) for row in batch.rows]

    def _after_each(self, absorbed: Fold, tokens: Sequence[int]) -> tuple[int, ...]:
        sampled = []
        for token in tokens:
            absorbed = absorbed.then(token)
            sampled.append(next_token(absorbed, self._vocab))
        return tuple(sampled)

    def measure(self, after: Snapshot, changed: Changed) -> tuple[Measurement, ...]:  # noqa: ARG002
        """Return nothing: there are no tensors."""
        return ()

    def cold_reply(self, prompt: Sequence[int], length: int) -> tuple[int, ...] | None:  # noqa: ARG002
        """Return ``None``: a hash of the prefix cannot be wrong."""
        return None


def next_token(absorbed: Fold, vocab: int) -> int:
    """Return the reply token after ``absorbed`` where nothing is computed: a hash of the prefix."""
    return (absorbed.digest * 2_654_435_761 >> 13) % vocab
