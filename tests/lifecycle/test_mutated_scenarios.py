"""Scenario files damaged at random: each gives a clear message or a normal verdict, soon.

``REPLAYLIFE_MUTATIONS`` says how many (300); 5,000 take about a minute.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections import Counter
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.scenario.complaints import MAX_MESSAGE
from replaylife.lifecycle.scenario.errors import ScenarioError
from replaylife.lifecycle.scenario.loader import Scenario, load_scenario
from replaylife.lifecycle.scenario.player import Player

from .support import SCENARIOS

MUTATIONS = int(os.environ.get("REPLAYLIFE_MUTATIONS", "300"))
SEED = 20
MAX_OUTCOMES = 400
MAX_SECONDS = 5.0
TOKEN = re.compile(rb"[A-Za-z0-9_.-]+|\s+|.", re.DOTALL)
NUMBER = re.compile(rb"(?<= )[0-9]+")
ODD = [
    *(b"-1", b"0", b"1", b"99999", b"1e9", b".nan", b"~", b"true", b"on", b"[]", b"{}", b"''", b"a", b"zz"),
    *(
        b"&x ",
        b"*x",
        b"!!str ",
        b"<<: ",
        b"? ",
        b"- ",
        b"\t",
        b"\r\n",
        b"\n",
        b"---\n",
        b"...\n",
        b"#",
        b"|\n",
    ),
    *(b"{", b"}", b"[", b"]", b":", b",", b"'", b'"', b"%", b"@", b"`", b"\0", b"\xff", b"\xef\xbb\xbf"),
]


@cache
def originals() -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted(SCENARIOS.glob("*.yaml")))


def mutated(number: int) -> bytes:
    """The damaged file of this number: one to four wounds, to bytes, lines, tokens or numbers."""
    source = random.Random(f"{SEED}/{number}")
    content = source.choice(originals())
    for _ in range(source.choice((1, 1, 2, 4))):
        content = source.choice((_bytes, _lines, _tokens, _numbers, _numbers))(content, source)
    return content


def _bytes(content: bytes, source: random.Random) -> bytes:
    at, width = source.randrange(len(content) + 1), source.randint(0, 3)
    fresh = bytes(source.randrange(256) for _ in range(source.randint(0, 3)))
    return content[:at] + fresh + content[at + width :]


def _lines(content: bytes, source: random.Random) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    at, other = source.randrange(len(lines)), source.randrange(len(lines))
    match source.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            lines[at] = b" " * source.randint(0, 9) + lines[at].lstrip()
    return b"".join(lines)


def _tokens(content: bytes, source: random.Random) -> bytes:
    tokens = TOKEN.findall(content) or [b""]
    at = source.randrange(len(tokens))
    match source.randrange(4):
        case 0:
            del tokens[at]
        case 1:
            tokens[at] = source.choice(tokens)
        case 2:
            tokens.insert(at, source.choice(ODD))
        case _:
            tokens[at] = source.choice(ODD)
    return b"".join(tokens)


def _numbers(content: bytes, source: random.Random) -> bytes:
    places = list(NUMBER.finditer(content))
    if not places:
        return content
    at = source.choice(places)
    return content[: at.start()] + str(source.randint(0, 40)).encode() + content[at.end() :]


def outcome(path: Path) -> str:
    """Read and play one file, and say how it ended. Whatever else is raised is a defect."""
    try:
        scenario = load_scenario(path)
    except ScenarioError as error:
        problems = error.problems
    else:
        return _play(scenario)
    assert problems
    assert all(problem.line >= 1 and problem.message.strip() for problem in problems)
    assert all("\n" not in p.message and len(p.message) <= MAX_MESSAGE for p in problems)
    return "mistakes told"


def _play(scenario: Scenario) -> str:
    made = EngineFactory(EngineConfig(scenario.model, scenario.cache), scenario.faults)
    player = Player(scenario, made.build())
    try:
        played = list(islice(player.play(), MAX_OUTCOMES))
    except (
        ValueError
    ):  # pool and tree refuse to go on in a world that a fault has broken; the command says so
        assert scenario.faults
        return "broken down by its fault"
    if len(played) == MAX_OUTCOMES:
        return "played on"
    return "held" if player.verdict.held else "did not hold"


@cache
def census() -> tuple[Counter[str], float]:
    """The outcomes of all mutated files, and the seconds that the slowest took."""
    import tempfile

    counts: Counter[str] = Counter()
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutated.yaml"
        for number in range(MUTATIONS):
            path.write_bytes(mutated(number))
            begun = time.perf_counter()
            try:
                counts[outcome(path)] += 1
            except Exception as error:
                raise AssertionError(f"mutation {number}: {error!r}") from error
            slowest = max(slowest, time.perf_counter() - begun)
    return counts, slowest


def test_each_gives_a_clear_message_or_a_normal_verdict() -> None:
    counts, slowest = census()
    print(f"{MUTATIONS} mutated files: {dict(counts)}, slowest {slowest:.2f} s")
    assert counts.total() == MUTATIONS


def test_none_takes_long() -> None:
    assert census()[1] < MAX_SECONDS


def test_every_outcome_is_met() -> None:
    counts, _ = census()
    least = {"mistakes told": 0.4, "held": 0.05, "did not hold": 0.05}
    assert {name: counts[name] for name, share in least.items() if counts[name] < share * MUTATIONS} == {}


def test_the_files_really_differ_from_the_shipped_ones() -> None:
    files = {mutated(number) for number in range(100)}
    assert len(files) > 90
    assert len(files & set(originals())) < 10


@pytest.mark.parametrize("number", range(3))
def test_a_number_gives_the_same_file_again(number: int) -> None:
    assert mutated(number) == mutated(number)
