"""A trace is written step by step, and never over another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from replaylife.lifecycle.trace.errors import TraceDamaged, TraceExists
from replaylife.lifecycle.trace.reader import TraceReader
from replaylife.lifecycle.trace.writer import TraceWriter

from .support import HEADER, lines_of, transitions


def test_each_step_is_in_the_file_before_the_next_is_played(tmp_path: Path) -> None:
    path, seen = tmp_path / "t.jsonl", 0
    with TraceWriter(path, HEADER) as trace:
        for t in transitions(20):
            trace.step(t)
            assert lines_of(path.read_bytes())[-1]["step"] == t.step
            seen += 1
        trace.finish()
    assert seen == 20
    assert lines_of(path.read_bytes())[-1]["type"] == "verdict"


KILLED = """
import os, sys
from pathlib import Path
from replaylife import EngineConfig, EngineFactory
from replaylife.lifecycle.actions import Probe
from replaylife.lifecycle.snapshot import Transition
from replaylife.lifecycle.trace.lines import Header
from replaylife.lifecycle.trace.writer import TraceWriter
engine = EngineFactory(EngineConfig()).build()
header = Header(tool="test", scenario="killed", capabilities=engine.capabilities)
trace = TraceWriter(Path(sys.argv[1]), header)
for step in range(1, 6):
    before, action = engine.snapshot(), Probe((1, 2, 3))
    trace.step(Transition(step, before, action, engine.apply(action), engine.snapshot()))
os.kill(os.getpid(), 9)
"""


def test_a_killed_run_leaves_a_readable_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == -9
    with TraceReader(path) as reader:
        steps = iter(reader)
        assert [next(steps).step for _ in range(5)] == [1, 2, 3, 4, 5]
        with pytest.raises(TraceDamaged, match="the file ends after step 5, without a verdict"):
            next(steps)


def test_a_file_that_holds_something_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("precious\n", encoding="utf-8")
    with pytest.raises(TraceExists, match="exists and is not empty; choose another name, or --force"):
        TraceWriter(path, HEADER)
    assert path.read_text(encoding="utf-8") == "precious\n"


def test_it_is_with_force(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("precious\n" * 1000, encoding="utf-8")
    TraceWriter(path, HEADER, force=True).close()
    assert [line["type"] for line in lines_of(path.read_bytes())] == ["header"]


@pytest.mark.parametrize("there", [True, False])
def test_an_empty_file_or_none_is_written_without_asking(there: bool, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    if there:
        path.touch()
    TraceWriter(path, HEADER).close()
    assert len(lines_of(path.read_bytes())) == 1


def test_what_is_no_regular_file_may_be_written_to() -> None:
    TraceWriter(Path(os.devnull), HEADER).close()


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceExists, match="is a directory"):
        TraceWriter(tmp_path, HEADER, force=True)


def test_a_step_that_does_not_follow_is_refused(tmp_path: Path) -> None:
    first, _, third = transitions(3)
    with TraceWriter(tmp_path / "t.jsonl", HEADER) as trace:
        trace.step(first)
        with pytest.raises(ValueError, match="step: 3, need 2"):
            trace.step(third)
