"""The viewer on a real pseudo-terminal: keys, another size, and the terminal given back as it was."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .recorded import faulty

LEAVE = b"\x1b[?1049l"  # the sequence that gives the ordinary screen back
PATIENCE = 60  # seconds


class Terminal:
    """A command on a pseudo-terminal of its own."""

    def __init__(self, ours: int, theirs: int, process: subprocess.Popen[bytes]) -> None:
        self.ours, self.theirs, self.process = ours, theirs, process
        self.seen = b""

    def wait_for(self, words: str) -> None:
        """Read on until these words have been drawn since the last wait."""
        deadline = time.monotonic() + PATIENCE
        while words.encode() not in self.seen:
            assert time.monotonic() < deadline, self.seen[-2000:].decode(errors="replace")
            if select.select([self.ours], [], [], 0.1)[0]:
                self.seen += os.read(self.ours, 65_536)
        self.seen = self.seen[self.seen.index(words.encode()) + len(words) :]

    def press(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def leave(self) -> int:
        """Read to the end and return the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline
            if select.select([self.ours], [], [], 0.1)[0]:
                self.seen += os.read(self.ours, 65_536)
        while select.select([self.ours], [], [], 0.1)[0]:
            self.seen += os.read(self.ours, 65_536)
        return self.process.returncode


@contextmanager
def on_terminal(*args: str, columns: int = 80, lines: int = 24) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color"}
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        env.pop(name, None)
    command = [sys.executable, "-m", "replaylife", *args]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=env)
    try:
        yield Terminal(ours, theirs, process)
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
        os.close(ours)
        os.close(theirs)


def test_a_trace_is_shown_stepped_through_resized_and_left_as_it_was(tmp_path: Path) -> None:
    with on_terminal("view", str(faulty(tmp_path / "t.jsonl"))) as terminal:
        before = termios.tcgetattr(terminal.theirs)
        terminal.wait_for("step 24 of 47")  # the first violation
        terminal.press("\x1b[C")
        terminal.wait_for("step 25 of 47")
        terminal.press(":3\r")
        terminal.wait_for("step 3 of 47")
        terminal.resize(50, 15)
        terminal.wait_for("step 3 of 47")
        terminal.resize(30, 15)
        terminal.wait_for("need at least 40x10")
        terminal.press("q")
        assert terminal.leave() == 0
        assert LEAVE in terminal.seen
        assert termios.tcgetattr(terminal.theirs) == before


def test_ctrl_c_leaves_too_and_gives_the_terminal_back(tmp_path: Path) -> None:
    with on_terminal("view", str(faulty(tmp_path / "t.jsonl"))) as terminal:
        before = termios.tcgetattr(terminal.theirs)
        terminal.wait_for("step 24 of 47")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.leave() == 130
        assert LEAVE in terminal.seen
        assert termios.tcgetattr(terminal.theirs) == before


def test_a_run_can_be_stepped_on_the_same_screen_and_turned_back() -> None:
    with on_terminal("run", "multiturn", "--backend", "none", "--step") as terminal:
        terminal.wait_for("step 1 of 1+")
        terminal.press("\x1b[C")
        terminal.wait_for("step 2 of 2+")
        terminal.press("\x1b[D")
        terminal.wait_for("step 1 of 2+")
        terminal.press(":20\r")
        terminal.wait_for("step 20 of 20+")
        terminal.press("G")
        terminal.wait_for("step 47 of 47 ")
        terminal.wait_for("everything held")
        terminal.press("q")
        assert terminal.leave() == 0
        assert "✓ multiturn: everything held".encode() in terminal.seen


def test_a_run_that_is_left_early_says_how_far_it_came() -> None:
    with on_terminal("run", "multiturn", "--backend", "none", "--step") as terminal:
        terminal.wait_for("step 1 of 1+")
        terminal.press("  ")
        terminal.wait_for("step 3 of 3+")
        terminal.press("q")
        assert terminal.leave() == 0
        assert b"(stopped before the end)" in terminal.seen
        assert b"3 steps" in terminal.seen
