"""Backends and helper modules of the kernel tests.

The suite runs with `--import-mode=importlib`, where test modules cannot import each other: the helpers are
loaded here and handed out as fixtures.
"""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from replaylife.kernels import REFERENCE, Kernels, RingFormat


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
    if "kernels" in metafunc.fixturenames:
        metafunc.parametrize("kernels", _configurations(metafunc), indirect=True)
    if "state_dtype" in metafunc.fixturenames:
        metafunc.parametrize("state_dtype", helpers.FLOATS, ids=lambda dtype: str(dtype).split(".")[1])


@pytest.fixture(scope="session")
def s():
    """The module `support`."""
    return _load("support")


@pytest.fixture(scope="session")
def oracle():
    return _load("oracle")


CONFIGURATIONS = {
    "torch-reference": ("torch", REFERENCE, False),
    "torch": ("torch", RingFormat(), True),
    "triton-reference": ("triton", REFERENCE, False),
    "triton-tuned": ("triton", RingFormat(), True),
    "torch-cumulative": ("torch", RingFormat(gates="cumulative"), True),
    "triton-cumulative": ("triton", RingFormat(gates="cumulative"), True),
}


def _kernels(name, device):
    backend, ring, tuned = CONFIGURATIONS[name]
    return Kernels.load(backend, device, ring, tuned=tuned)


FORMAT_FREE = {"test_conv", "test_conv_window", "test_kv_replay", "test_prefill"}


def _configurations(metafunc):
    """The configurations to test in: one per backend where no ring is read or written by the operation."""
    module = metafunc.module.__name__.rpartition(".")[2]
    return ["torch", "triton-tuned"] if module in FORMAT_FREE else list(CONFIGURATIONS)


@pytest.fixture
def kernels(request, s):
    """Kernels of each configuration: Triton is interpreted without a CUDA device and compiled with one."""
    return _kernels(request.param, s.DEVICE)


@pytest.fixture(params=["torch-reference", "triton-reference"])
def reference(request, s):
    """The configuration that agrees with packed decode bit for bit, on each backend."""
    return _kernels(request.param, s.DEVICE)


@pytest.fixture(params=["-reference", "-tuned", "-cumulative"])
def twins(request, s):
    """Both backends with one ring format: torch, then Triton."""
    torch_name = "torch" + request.param.removesuffix("-tuned")
    return _kernels(torch_name, s.DEVICE), _kernels("triton" + request.param, s.DEVICE)


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors: more threads only cost time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
