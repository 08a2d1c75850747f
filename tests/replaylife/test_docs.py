"""The documentation is what the code says and does.

REPLAYLIFE_UPDATE_DOCS=1 writes the generated parts anew.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from replaylife.cli.program import COMMANDS
from replaylife.lifecycle.scenario.schema import ScenarioFile
from replaylife.lifecycle.scenario.steps import STEPS

from .command import invoke
from .pages import BLOCK, PARTS, regenerated

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
GENERATED = [page for page in DOCS if BLOCK.search(page.read_text(encoding="utf-8"))]
NAMES = {page.name: page for page in DOCS}
FENCE = re.compile(r"^```(\w+)(?: name=(\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.name)
def test_the_generated_parts_are_what_the_code_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if os.environ.get("REPLAYLIFE_UPDATE_DOCS"):
        page.write_text(regenerated(text), encoding="utf-8")
        text = page.read_text(encoding="utf-8")
    assert text == regenerated(text), "REPLAYLIFE_UPDATE_DOCS=1 pytest tests/replaylife/test_docs.py"


def test_every_generated_part_is_in_some_page() -> None:
    found = [part for page in GENERATED for _, part, _ in BLOCK.findall(page.read_text(encoding="utf-8"))]
    assert sorted(found) == sorted(PARTS)


def test_a_page_that_lags_is_noticed() -> None:
    page = "<!-- generated: faults -->\nold\n<!-- end -->\n"
    assert regenerated(page) != page
    assert regenerated(regenerated(page)) == regenerated(page)


def _fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for owner, model in ({"ScenarioFile": schema} | schema["$defs"]).items():
        yield from ((f"{owner}.{name}", field) for name, field in model["properties"].items())


def undescribed(schema: dict[str, Any]) -> list[str]:
    """Fields of the scenario language that nobody has described."""
    return [name for name, field in _fields(schema) if not field.get("description")]


def test_every_field_of_the_language_is_described() -> None:
    schema = ScenarioFile.model_json_schema()
    assert len(list(_fields(schema))) >= 70
    assert undescribed(schema) == []


def test_a_field_without_a_description_is_caught() -> None:
    schema = ScenarioFile.model_json_schema()
    del schema["$defs"]["Decode"]["properties"]["n"]["description"]
    assert undescribed(schema) == ["Decode.n"]


def test_every_field_of_the_language_has_its_line_in_the_page() -> None:
    text = NAMES["scenarios.md"].read_text(encoding="utf-8")
    for name, field in _fields(ScenarioFile.model_json_schema()):
        assert f"| `{name.partition('.')[2]}` |" in text or name.partition(".")[2] in STEPS
        assert field["description"] in text or name.startswith("Step.")
    for key in STEPS:
        assert f"#### `{key}`\n" in text


def test_every_command_and_option_is_in_the_page() -> None:
    text = NAMES["commands.md"].read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"## replaylife {name}\n" in text
        assert invoke(name, "--help").exit_code == 0


@pytest.mark.parametrize("page", [*DOCS, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]*)(?:#[^)]*)?\)", text):
        if target and "://" not in target and target != "trace.md":
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_of_each_shell_can_be_had(shell: str) -> None:
    assert f"_REPLAYLIFE_COMPLETE={shell}_source" in NAMES["commands.md"].read_text(encoding="utf-8")
    env = {**os.environ, "_REPLAYLIFE_COMPLETE": f"{shell}_source"}
    code = "from replaylife.cli import main; main(prog_name='replaylife')"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert "_REPLAYLIFE_COMPLETE" in done.stdout, done.stderr


# -- pages whose commands are run ----------------------------------------------------------------------


class Block(NamedTuple):
    kind: str
    name: str
    text: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page: kind, the file that a block is (if any), text."""
    return [Block(*found) for found in FENCE.findall(NAMES[page].read_text(encoding="utf-8"))]


def pattern(shown: str) -> re.Pattern[str]:
    """Shown output as a pattern: a line ``...`` stands for any lines, counts and times may vary."""
    parts = []
    for line in shown.splitlines():
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
            continue
        escaped = re.escape(line.rstrip())
        varying = re.search(r"invariants? after each|plugins: |platform |rootdir: | in \d|version", line)
        parts.append((_loosely(escaped) if varying else escaped) + r"[^\S\n]*\n")
    return re.compile("".join(parts))


def _loosely(escaped: str) -> str:
    numbers = re.sub(r"\d[\d,.]*", r"[\\d,.]+", escaped)
    return re.sub(r"(?:\\ ){2,}|=+", lambda m: r"\s+" if m[0][0] == "\\" else "=+", numbers)


def test_the_comparison_of_shown_output_can_fail() -> None:
    shown = "a\n...\nz 5\n3 passed in 0.12s\n"
    assert pattern(shown).fullmatch("a\nb\nc\nz 5\n4 passed in 1.50s\n")
    assert pattern(shown).fullmatch("a\nz 5\n4 passed in 1.50s\n")
    assert not pattern(shown).fullmatch("a\nz 6\n4 passed in 1.50s\n")
    assert not pattern(shown).fullmatch("z 5\n3 passed in 0.12s\n")


def _shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run one command of a page: replaylife and pytest are those of this Python."""
    words = shlex.split(command)
    env = {**os.environ, "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("PYTEST_ADDOPTS", None)
    assert words[0] in ("replaylife", "pytest", "cat"), command
    prefix = [words[0]] if words[0] == "cat" else [sys.executable, "-m", words[0]]
    return subprocess.run(
        [*prefix, *words[1:]], cwd=cwd, env=env, text=True, check=False, timeout=300,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.mark.parametrize(("page", "least"), [("tutorial.md", 8), ("view.md", 5), ("planning.md", 3)])
def test_every_command_of_the_page_prints_what_the_page_shows(page: str, least: int, tmp_path: Path) -> None:
    ran = 0
    for block in blocks(page):
        if block.name:
            (tmp_path / block.name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.name).write_text(block.text, encoding="utf-8")
        if block.kind == "console":
            command, _, shown = block.text.removeprefix("$ ").partition("\n")
            done = _shell(command, tmp_path)
            assert pattern(shown).fullmatch(done.stdout), f"{command}\n{done.stdout}"
            ran += 1
    assert ran >= least


def test_the_examples_of_the_pages_play(tmp_path: Path) -> None:
    (example,) = (block for block in blocks("scenarios.md") if block.name)
    (tmp_path / example.name).write_text(example.text, encoding="utf-8")
    assert _shell(f"replaylife run {example.name} --backend none --quiet", tmp_path).returncode == 0
    (tests,) = (block for block in blocks("pytest.md") if block.kind == "python")
    (tmp_path / "test_example.py").write_text(tests.text, encoding="utf-8")
    done = _shell("pytest -q test_example.py", tmp_path)
    assert "2 passed" in done.stdout, done.stdout
