"""Backends and helper modules of the kernel tests.

The suite runs with `--import-mode=importlib`, where test modules cannot import each other: the helpers are
loaded here and handed out as fixtures.
"""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from replaylife.kernels import Kernels


def _load(name):
    alias = f"_kernel_tests_{name}"
    if alias not in sys.modules:
        spec = importlib.util.spec_from_file_location(alias, Path(__file__).with_name(f"{name}.py"))
        sys.modules[alias] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[alias])
    return sys.modules[alias]


def pytest_generate_tests(metafunc):
    helpers = _load("support")
    if "shape" in metafunc.fixturenames:
        metafunc.parametrize("shape", helpers.SHAPES, ids=lambda shape: shape.label)
    if "tiny" in metafunc.fixturenames:
        metafunc.parametrize("tiny", helpers.TINY, ids=lambda shape: shape.label)
    if "odd" in metafunc.fixturenames:
        metafunc.parametrize("odd", helpers.ODD, ids=lambda shape: shape.label)
    if "state_dtype" in metafunc.fixturenames:
        metafunc.parametrize("state_dtype", helpers.FLOATS, ids=lambda dtype: str(dtype).split(".")[1])


@pytest.fixture(scope="session")
def s():
    """The module `support`."""
    return _load("support")


@pytest.fixture(scope="session")
def oracle():
    return _load("oracle")


@pytest.fixture(params=["torch", "triton"])
def kernels(request, s):
    """Kernels of each backend: Triton is interpreted without a CUDA device and compiled with one."""
    return Kernels.load(request.param, s.DEVICE)


@pytest.fixture
def twins(s):
    """Both backends at once: torch, then Triton."""
    return Kernels.load("torch", s.DEVICE), Kernels.load("triton", s.DEVICE)


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors: more threads only cost time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
