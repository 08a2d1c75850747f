"""Follows CONTRIBUTING.md in a copy of the checkout: one file and one line each, and the new thing works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```\w+ (name|line)=(\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FAULT, INVARIANT, SCENARIO = "match-takes-whole-prompt", "cached-within-prompt", "whole-turns"


class Block(NamedTuple):
    """A file to write, or a line to add to ``FILES`` of a file."""

    how: str
    path: str
    text: str


def section(title: str) -> list[Block]:
    """The blocks below one heading of the page."""
    text = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return [Block(*found) for found in BLOCK.findall(text)]


def follow(checkout: Path, title: str) -> None:
    """Do what the page says below a heading."""
    for how, path, text in section(title):
        file = checkout / path
        if how == "name":
            assert not file.exists(), f"{path} is there already"
            file.write_text(text, encoding="utf-8")
            continue
        before, found, after = file.read_text(encoding="utf-8").partition("FILES = (\n")
        assert found, f"{path} has no FILES"
        listed, end, rest = after.partition(")\n")
        file.write_text(before + found + listed + text + end + rest, encoding="utf-8")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the project is made of."""
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    for folder in (*setup["package-dir"].values(), "tests", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "CONTRIBUTING.md", "README.md"):
        shutil.copy(ROOT / file, tmp_path)
    return tmp_path


def python(checkout: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m args`` in the copy: Python finds the copy's folders first."""
    return subprocess.run(
        [sys.executable, "-m", *args],
        cwd=checkout,
        env={**os.environ, "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1", **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )


def replaylife(checkout: Path, *args: str) -> tuple[int, str]:
    done = python(checkout, "replaylife", *args)
    return done.returncode, done.stdout + done.stderr


def outcome_of(checkout: Path, *args: str, **env: str) -> str:
    """The last line of a run of the copy's tests."""
    done = python(checkout, "pytest", "-q", "-p", "no:cacheprovider", *args, **env)
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize("title", ["Adding an invariant", "Adding a fault", "Adding a scenario step"])
def test_each_addition_is_one_python_file_and_one_line(title: str) -> None:
    blocks = section(title)
    assert sum(block.path.endswith(".py") for block in blocks if block.how == "name") == 1
    (line,) = (block for block in blocks if block.how == "line")
    assert len(line.text.splitlines()) == 1


def test_the_copy_is_what_runs(checkout: Path) -> None:
    assert "no fault, invariant" in replaylife(checkout, "explain", FAULT)[1]
    (checkout / "lifecycle" / "faults" / "__init__.py").write_text("raise SystemExit('the copy')\n")
    assert replaylife(checkout, "faults")[1].strip() == "the copy"


def test_an_invariant_and_the_fault_that_trips_it_are_added(checkout: Path) -> None:
    tripped = ("tests/lifecycle/test_faults.py", "-k", f"{FAULT} or every_invariant")
    follow(checkout, "Adding an invariant")
    assert replaylife(checkout, "run", "multiturn", "--backend", "none")[0] == 0
    assert "1 failed" in outcome_of(checkout, *tripped), "no fault trips it yet"

    follow(checkout, "Adding a fault")
    code, text = replaylife(checkout, "run", FAULT, "--backend", "none")
    assert (code, "1 invariant violated, as expected" in text) == (0, True), text
    assert "request b: 10 tokens cached, expected at most 9" in text
    assert "9 passed" in outcome_of(checkout, *tripped)
    assert FAULT in replaylife(checkout, "explain", INVARIANT)[1]
    assert "passed" in (kept := outcome_of(checkout, "tests/test_architecture.py"))
    assert "failed" not in kept


def test_a_scenario_step_is_added(checkout: Path) -> None:
    assert replaylife(checkout, "run", str(checkout / "scenarios" / f"{SCENARIO}.yaml"))[0] == 2
    follow(checkout, "Adding a scenario step")
    code, text = replaylife(checkout, "run", SCENARIO, "--backend", "none")
    assert code == 0, text
    assert "47 steps" in text, "two turns of 23 actions and the look between them"
    assert "passed" in outcome_of(checkout, f"scenarios/{SCENARIO}.yaml", "--replaylife-backend=torch")

    wrong = checkout / "scenarios" / "wrong-turns.yaml"
    good = (checkout / "scenarios" / f"{SCENARIO}.yaml").read_text(encoding="utf-8")
    wrong.write_text(good.replace("decode: 20}", "decodes: 20}").replace("request: b", "request: a"))
    code, text = replaylife(checkout, "run", str(wrong), "--backend", "none")
    assert code == 2
    assert "wrong-turns.yaml:4: unknown key 'decodes'; did you mean 'decode'?" in text
    wrong.write_text(good.replace("request: b", "request: a"))
    assert (
        "wrong-turns.yaml:6: request 'a' was admitted in line 4" in replaylife(checkout, "run", str(wrong))[1]
    )


def test_the_pages_follow_what_was_added(checkout: Path) -> None:
    for title in ("Adding an invariant", "Adding a fault", "Adding a scenario step"):
        follow(checkout, title)
    written = ("tests/replaylife/test_docs.py", "-k", "generated or described")
    assert "failed" in outcome_of(checkout, *written), "the pages lag"
    assert "failed" not in outcome_of(checkout, *written, REPLAYLIFE_UPDATE_DOCS="1")
    pages = {
        name: (checkout / "docs" / f"{name}.md").read_text() for name in ("faults", "invariants", "scenarios")
    }
    assert f"`{FAULT}`" in pages["faults"]
    assert f"`{INVARIANT}`" in pages["invariants"]
    assert "#### `turn`" in pages["scenarios"]
