"""Parameters that pool tests may ask for by name."""

from __future__ import annotations

import pytest
import torch

from replaylife.pool import Gate

torch.set_num_threads(1)


@pytest.fixture(params=["gdn", "kda"])
def gate(request: pytest.FixtureRequest) -> Gate:
    """Both kinds of decay; a test may override it with parameters of its own."""
    kind: Gate = request.param
    return kind
