"""``replaylife run --step`` on a terminal: one key, one step."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
import time
from typing import IO

import pytest


def _step(keys: str) -> tuple[int, str]:
    """Run with a pseudo-terminal for stdin; type one of ``keys`` after each prompt."""
    ours, theirs = pty.openpty()
    args = [sys.executable, "-m", "replaylife", "run", "multiturn", "--backend", "none", "--step"]
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(args, stdin=theirs, stdout=out, stderr=subprocess.PIPE)
        assert process.stderr is not None
        for key in keys:
            _wait_for(process.stderr, b"q quit ")
            time.sleep(0.05)  # what is typed before the terminal is made raw is thrown away
            os.write(ours, key.encode())
        process.stderr.read()
        process.stderr.close()
        code = process.wait(timeout=60)
        os.close(ours)
        os.close(theirs)
        out.seek(0)
        return code, out.read()


def _wait_for(stream: IO[bytes], words: bytes) -> None:
    seen = b""
    while not seen.endswith(words):
        char = stream.read(1)
        assert char, f"the command ended after {seen!r}"
        seen += char


@pytest.mark.parametrize("steps", [1, 5])
def test_enter_goes_one_step_further_and_q_ends_the_run(steps: int) -> None:
    code, out = _step("\r" * (steps - 1) + "q")
    assert code == 0
    assert "nothing broken so far (stopped before the end)" in out
    assert f"played     {steps} step" in out


def test_c_plays_to_the_end_and_draws_decodes_together_again() -> None:
    code, out = _step("\r\r\r\rc")
    assert code == 0
    assert "✓ multiturn: everything held" in out
    assert "  6..18  decode turn1" in out
