"""What becomes of each publicly reported mechanism: ``mechanisms.toml``, read and checked."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias, get_args

Outcome: TypeAlias = Literal["faults", "needs", "silent", "outside"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """One way in which a cache of recurrent states went wrong in public, and what becomes of it here.

    ``id`` is the report, ``owner/repository#number``, with a last part where one report has several;
    ``sources`` are URLs, the report's own first. Exactly one of the outcomes is given: the seeded ``faults``
    that reproduce it; what it ``needs`` that the engine does not have, with what the ``fault`` will replace
    there; why the checks must stay ``silent``; why it is ``outside`` of what the model can express.
    ``note`` says where fault and report differ. Raises ``ValueError`` for anything else.
    """

    id: str
    sources: tuple[str, ...]
    title: str
    faults: tuple[str, ...] = ()
    needs: str = ""
    fault: str = ""
    silent: str = ""
    outside: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        given = [outcome for outcome in OUTCOMES if getattr(self, outcome)]
        if len(given) != 1:
            wanted = f"exactly one of {', '.join(OUTCOMES)}"
            raise ValueError(
                f"mechanism {self.id}: found {' and '.join(given) or 'no outcome'}, need {wanted}"
            )
        if bool(self.needs) != bool(self.fault):
            raise ValueError(f"mechanism {self.id}: 'needs' and 'fault' go together; give both or neither")
        if not self.sources or not self.title:
            raise ValueError(f"mechanism {self.id}: needs a title and at least one source")

    @property
    def outcome(self) -> Outcome:
        """Which of the outcomes is given."""
        return next(outcome for outcome in OUTCOMES if getattr(self, outcome))


def parse(text: str) -> dict[str, Mechanism]:
    """Return the mechanisms of a TOML document by id, in its order.

    Raises ``ValueError`` for an entry that is incomplete, has an unknown key, or repeats an id.
    """
    found: dict[str, Mechanism] = {}
    for entry in tomllib.loads(text).get("mechanism", []):
        mechanism = _mechanism(entry)
        if mechanism.id in found:
            raise ValueError(f"mechanism {mechanism.id}: given twice, need one entry")
        found[mechanism.id] = mechanism
    return found


def _mechanism(entry: dict[str, Any]) -> Mechanism:
    name = entry.get("id", "without an id")
    unknown = sorted(entry.keys() - Mechanism.__dataclass_fields__.keys())
    if unknown:
        known = ", ".join(Mechanism.__dataclass_fields__)
        raise ValueError(f"mechanism {name}: unknown key {unknown[0]!r}, need one of {known}")
    lists: dict[str, Any] = {key: tuple(entry[key]) for key in ("sources", "faults") if key in entry}
    try:
        return Mechanism(**{**entry, **lists})
    except TypeError as error:
        raise ValueError(f"mechanism {name}: {error}") from None


@cache
def mechanisms() -> dict[str, Mechanism]:
    """Return every mechanism by id."""
    return parse((files(__package__) / "mechanisms.toml").read_text(encoding="utf-8"))
