"""Entries of the reference as text: short ones for lists, the whole of one for ``explain``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from replaylife.reference import Entry, FaultEntry, InvariantEntry, ScenarioEntry, StrategyEntry
from replaylife.view.look import BOLD, DIM, STATE, Look, count, hang

LABEL = 16  # columns of the label and of the indent of all that stands beside it
INDENT = 4
RUNS = {"ledger": "runs without tensors", "tensors": "runs on tensors", "witness": "witness runs"}
MOMENTS = {"after_chunk": "after a chunk", "at_track_point": "at track point", "finish": "at finish"}


def brief_lines(entry: Entry, look: Look) -> Iterator[Text]:
    """Yield an entry as a list has it: its id, a sentence, and the facts by which people choose."""
    yield Text(entry.id, BOLD)
    yield from hang(Text(_sentence(entry)), INDENT, look.width)
    for label, value in _brief_facts(entry):
        yield from _fact(label, value, look, INDENT)


def full_lines(entry: Entry, look: Look) -> Iterator[Text]:
    """Yield all there is to say of an entry."""
    yield from hang(Text.assemble((entry.id, BOLD), (f"  {entry.kind}", DIM)), 0, look.width)
    yield from hang(Text(_sentence(entry)), 0, look.width)
    yield Text()
    for label, value in _full_facts(entry):
        if value:
            yield from _fact(label, value, look, 0)
    yield Text.assemble(("see it".ljust(LABEL), DIM), (entry.command, STATE), no_wrap=True, overflow="ignore")
    yield from _fact("related", _listed(entry.related), look, 0)


def brief_text(entry: Entry) -> str:
    """Return what a list shows of an entry, for searching."""
    facts = [fact if isinstance(fact, str) else " ".join(fact) for _, fact in _brief_facts(entry)]
    return "\n".join((entry.id, _sentence(entry), *facts))


def _sentence(entry: Entry) -> str:
    return entry.claim if isinstance(entry, InvariantEntry) else entry.title


def _fact(label: str, value: str | Sequence[str], look: Look, indent: int) -> Iterator[Text]:
    """Write the label once, and each paragraph of the value beside it."""
    for number, paragraph in enumerate([value] if isinstance(value, str) else value):
        head = "" if number else label
        text = Text.assemble((head.ljust(LABEL), DIM), paragraph)
        yield from hang(text, indent, look.width, deeper=LABEL)


def _listed(names: Iterable[str], *, none: str = "none") -> str:
    return ", ".join(names) or none


def _trips(entry: FaultEntry) -> list[str]:
    lines = [f"from positions: {_listed(entry.ledger)}"]
    return [*lines, f"from tensors: {_listed(entry.numeric)}"]


def _setup(entry: ScenarioEntry) -> str:
    parts = [entry.gate, entry.strategy]
    parts += [f"ring of {entry.ring_length}"] if entry.replayssm else ["ReplaySSM off"]
    parts += [f"finish {entry.finish}"] if entry.finish != "truncate" else []
    parts += [f"track {entry.track}"] if entry.track != "snapshot" else []
    return ", ".join(parts)


def _brief_facts(entry: Entry) -> Iterator[tuple[str, str | list[str]]]:
    match entry:
        case FaultEntry():
            yield "trips", _trips(entry)
            yield "scenario", entry.scenario
            yield "source", entry.source
        case InvariantEntry():
            yield "judged from", entry.judged_from
            yield "tripped by", _listed(entry.tripped_by, none="no fault at its first step")
        case ScenarioEntry():
            yield "set-up", f"{_setup(entry)}; {count(entry.steps, 'step')}"
            if entry.faults:
                yield "faults", _listed(entry.faults)
        case StrategyEntry():
            yield "source", entry.source


def _full_facts(entry: Entry) -> Iterator[tuple[str, str | list[str]]]:
    match entry:
        case FaultEntry():
            yield "mechanism", entry.mechanism
            yield "right value", entry.right_value
            yield "source", entry.source
            yield "reproduces", _listed(entry.mechanisms, none="")
            yield "replaces", entry.replaces
            yield "trips", _trips(entry)
            yield "damage", entry.damage
            yield "scenario", entry.scenario
        case InvariantEntry():
            yield "judged from", entry.judged_from
            yield "judged in", _listed(RUNS[run] for run in entry.judged_in)
            yield "tripped by", _listed(entry.tripped_by, none="no fault at its first step")
            yield "scenario", entry.scenario or ""
        case StrategyEntry():
            yield from ((MOMENTS.get(name, name), what) for name, what in entry.moments.items())
            yield "source", entry.source
            yield "scenarios", f"{count(len(entry.scenarios), 'shipped scenario')} use it"
        case ScenarioEntry():
            yield "what happens", entry.description
            yield "set-up", f"{_setup(entry)}, track point every {entry.track_interval}"
            yield "steps", _listed(f"{number} {kind}" for kind, number in entry.kinds.items())
            yield "faults", _listed(entry.faults)
            yield "violations", _listed(entry.expects)
            yield "file", entry.file
