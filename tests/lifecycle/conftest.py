"""Backends that this machine can run."""

from __future__ import annotations

import pytest
import torch

torch.set_num_threads(1)

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give ``gate``, ``state_dtype`` and ``backend`` to tests that ask for them."""
    choices = {
        "gate": ["gdn", "kda"],
        "state_dtype": ["fp32", "bf16", "fp16"],
        "backend": ["torch", "triton"],
    }
    for name, values in choices.items():
        if name in metafunc.fixturenames and not _marked(metafunc, name):
            metafunc.parametrize(name, values)


def _marked(metafunc: pytest.Metafunc, name: str) -> bool:
    marks = metafunc.definition.iter_markers("parametrize")
    names = [mark.args[0] for mark in marks]
    return any(
        name in (given.replace(" ", "").split(",") if isinstance(given, str) else given) for given in names
    )


@pytest.fixture
def device() -> str:
    """Where tensors live: the GPU if there is one, so that Triton runs compiled there."""
    return DEVICE
