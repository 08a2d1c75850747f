"""The text of whole runs, as it stands in ``snapshots/``; REPLAYLIFE_UPDATE_SNAPSHOTS=1 writes it anew."""

from __future__ import annotations

import os
import re
import shutil
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from .command import FAULT, run

SNAPSHOTS = Path(__file__).parent / "snapshots"
COUNTS = re.compile(r"\d+ invariants after each: [\d,]+ checks.*")  # grows with the catalogue of invariants
CASES = {"clean": ((), 0), "faulty": (("--fault", FAULT), 1)}


@pytest.fixture
def multiturn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of the shipped scenario in the working directory, so that its path is the same everywhere."""
    with as_file(files("replaylife.scenarios") / "multiturn.yaml") as shipped:
        shutil.copy(shipped, tmp_path)
    monkeypatch.chdir(tmp_path)
    return "multiturn.yaml"


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("case", CASES)
def test_a_run_reads_as_its_snapshot(multiturn: str, case: str, columns: int) -> None:
    options, code = CASES[case]
    result = run(multiturn, *options, columns=columns)
    stored = SNAPSHOTS / f"multiturn-{case}-{columns}.txt"
    text = COUNTS.sub("(as many checks as there are invariants)", result.stdout)
    if os.environ.get("REPLAYLIFE_UPDATE_SNAPSHOTS"):
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")
    assert result.exit_code == code


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("case", CASES)
def test_only_the_command_to_copy_is_wider_than_the_screen(multiturn: str, case: str, columns: int) -> None:
    text = run(multiturn, *CASES[case][0], columns=columns).stdout
    wide = [line for line in text.splitlines() if len(line) > columns]
    assert all(line.strip().startswith("reproduce: ") for line in wide)
    assert len(text.splitlines()) > 50


def test_no_line_ends_in_blanks(multiturn: str) -> None:
    text = run(multiturn, "--fault", FAULT).stdout
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_a_narrow_screen_still_shows_everything_that_matters(multiturn: str) -> None:
    text = run(multiturn, "--fault", FAULT, columns=50).stdout
    assert "step 24 breaks key-matches-state" in text
    assert "temporal 26" in text
