"""How long the worked example takes from the shell, by backend: wall seconds of `replaylife run multiturn`.

python bench/run_times.py
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys
import time

LIMITS = {"none": 1.5, "torch": 8.0, "triton": 30.0}
REPEATS = 3


def seconds(backend: str) -> float:
    command = [sys.executable, "-m", "replaylife", "run", "multiturn", "--quiet", "--backend", backend]
    if backend != "none":
        command += ["--device", "cpu"]
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    machine = platform.processor() or platform.machine()
    print(f"{machine}, Python {platform.python_version()}, median of {REPEATS}")
    print(f"{'backend':10}{'seconds':>9}{'limit':>8}")
    for backend, limit in LIMITS.items():
        took = statistics.median(seconds(backend) for _ in range(REPEATS))
        print(f"{backend:10}{took:9.2f}{limit:8.1f}{'' if took <= limit else '  over the limit'}")


if __name__ == "__main__":
    main()
