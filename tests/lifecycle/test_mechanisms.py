"""Every public mechanism has one line: a seeded fault, what it needs, or why the checks stay silent."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.faults.mechanisms import Mechanism, mechanisms, parse

ROOT = Path(__file__).parents[2]
ENTRY = '[[mechanism]]\nid = "o/r#1"\nsources = ["https://github.com/o/r/pull/1"]\ntitle = "t"\n'
REPORT = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+")


def test_all_48_are_there_and_most_are_seeded_faults() -> None:
    outcomes = Counter(mechanism.outcome for mechanism in mechanisms().values())
    assert sum(outcomes.values()) == 48
    assert outcomes["faults"] >= 42


@pytest.mark.parametrize("id", mechanisms())
def test_the_first_source_is_the_report_that_the_id_names(id: str) -> None:
    sources = mechanisms()[id].sources
    repository, number = id.split("/")[:2], id.partition("#")[2].partition("/")[0]
    owner, name = repository[0], repository[1].partition("#")[0]
    assert sources[0] in {f"https://github.com/{owner}/{name}/{kind}/{number}" for kind in ("issues", "pull")}
    assert all(REPORT.fullmatch(source) for source in sources)


def test_every_fault_that_a_mechanism_names_exists() -> None:
    named = {fault for mechanism in mechanisms().values() for fault in mechanism.faults}
    assert named <= FAULTS.keys()
    assert len(named) >= 57


def strays(known: dict[str, Mechanism]) -> list[str]:
    """Faults that cite a listed report which does not name them, or are named by reports they do not cite."""
    found = []
    for fault in FAULTS.values():
        naming = [mechanism for mechanism in known.values() if fault.id in mechanism.faults]
        cited = [mechanism for mechanism in known.values() if fault.source in mechanism.sources]
        if cited and not {m.id for m in cited} & {m.id for m in naming}:
            found.append(f"{fault.id} cites {cited[0].id}, which does not name it")
        if naming and not any(fault.source in mechanism.sources for mechanism in naming):
            found.append(f"{fault.id} cites none of the reports that name it")
    return found


def test_every_fault_cites_its_mechanism_or_another_public_report() -> None:
    assert strays(mechanisms()) == []


def test_a_fault_that_its_mechanism_does_not_name_is_noticed() -> None:
    known = dict(mechanisms())
    known["jundot/omlx#3086"] = Mechanism(
        id="jundot/omlx#3086", sources=("https://github.com/jundot/omlx/pull/3086",), title="t", outside="why"
    )
    assert strays(known) == [
        "live-state-as-block cites jundot/omlx#3086, which does not name it",
        "live-state-as-block cites none of the reports that name it",
    ]


def test_every_mechanism_has_exactly_one_line_in_the_docs() -> None:
    lines = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8").splitlines()
    counts = Counter(id for line in lines for id in mechanisms() if line.startswith(f"| [{id}]("))
    assert counts == dict.fromkeys(mechanisms(), 1)


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (ENTRY, "no outcome, need exactly one of faults, needs, silent, outside"),
        (ENTRY + 'silent = "a"\noutside = "b"\n', "found silent and outside"),
        (ENTRY + 'needs = "a"\n', "'needs' and 'fault' go together"),
        (ENTRY + 'silent = "a"\n' + ENTRY + 'silent = "a"\n', "given twice"),
        (ENTRY + 'silence = "a"\n', "unknown key 'silence'"),
        ('[[mechanism]]\nid = "o/r#1"\nsources = []\ntitle = "t"\nsilent = "a"\n', "at least one source"),
        ('[[mechanism]]\nsources = ["u"]\ntitle = "t"\nsilent = "a"\n', "without an id"),
    ],
)
def test_an_incomplete_entry_is_refused(entry: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse(entry)
