"""Where a sweep runs: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any


def local(jobs: int) -> Callable[[], AbstractContextManager[Executor]]:
    """Return what makes a pool of ``jobs`` processes; they start afresh, so that nothing is shared."""

    def make() -> AbstractContextManager[Executor]:
        return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))

    return make


def cluster(address: str, timeout_s: float = 10.0) -> Callable[[], AbstractContextManager[Executor]]:
    """Return what connects to a Dask scheduler, ``tcp://host:port``; needs the extra ``cluster``.

    A worker that dies has its replays played by another. Workers must be able to read the log at its path and
    have this package installed. Connecting raises ``OSError`` where nobody answers within ``timeout_s``.
    """

    @contextmanager
    def make() -> Iterator[Executor]:
        from distributed import Client

        client: Any = Client(address, timeout=timeout_s, set_as_default=False)
        try:
            executor: Executor = client.get_executor(pure=False)
            yield executor
        finally:
            client.close()

    return make
