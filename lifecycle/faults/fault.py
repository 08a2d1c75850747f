"""What a seeded fault is."""

from __future__ import annotations

from dataclasses import dataclass

LOGITS = "logits"
DAMAGE = 100  # times the tolerance of the logits


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which a real engine went wrong, as a replacement of one method.

    ``mixin`` derives from the class whose method it replaces; the factory composes it in. ``source`` is the
    public report. ``ledger`` and ``numeric`` name the invariants that must fire at the first violating
    step, the former from positions alone, the latter from tensors. ``right_value`` says what a correct
    engine has there; ``scenario`` is the smallest shipped scenario that shows it. ``damage`` is ``logits``
    where that scenario ends in logits that are off by at least :data:`DAMAGE` times the tolerance, and
    otherwise says why the logits of its requests stay right.
    """

    id: str
    title: str
    source: str
    mechanism: str
    right_value: str
    scenario: str
    mixin: type
    ledger: tuple[str, ...]
    numeric: tuple[str, ...]
    damage: str = LOGITS
