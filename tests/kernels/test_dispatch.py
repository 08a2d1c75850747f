"""Which kernels run: always those asked for."""

import os
import subprocess
import sys

import pytest
import torch

from replaylife.kernels import Kernels, dispatch


def _python(code, **env):
    clean = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return subprocess.run(
        [sys.executable, "-c", code], env=clean | env, capture_output=True, text=True, timeout=120
    )


def test_the_import_loads_neither_torch_nor_triton():
    done = _python(
        "import sys, replaylife.kernels\n"
        "assert not {'torch', 'triton', 'numpy'} & set(sys.modules), 'imported'\n"
        "import torch; assert 'torch' in sys.modules"
    )
    assert done.returncode == 0, done.stderr


def test_compiled_triton_is_not_used_on_a_cpu_device():
    done = _python(
        "import torch, triton\n"
        "from replaylife.kernels import Kernels\n"
        "assert Kernels.load('torch', torch.device('cpu')).mode == 'torch'\n"
        "Kernels.load('triton', torch.device('cpu'))"
    )
    assert done.returncode == 1
    assert "needs triton-interpreted, but this process has imported triton-compiled" in done.stderr


def test_a_set_interpreter_variable_is_refused_on_cuda():
    code = (
        "import torch\nfrom replaylife.kernels import Kernels\nKernels.load('triton', torch.device('cuda'))"
    )
    done = _python(code, TRITON_INTERPRET="1")
    assert done.returncode == 1
    assert "TRITON_INTERPRET is set" in done.stderr


@pytest.mark.parametrize(
    ("have", "device"), [("triton-interpreted", "cuda"), ("triton-compiled", "cpu")], ids=["cuda", "cpu"]
)
def test_triton_loaded_the_other_way_is_refused(monkeypatch, have, device):
    monkeypatch.setattr(dispatch, "loaded_triton", lambda: have)
    with pytest.raises(RuntimeError, match=f"this process has imported {have}"):
        Kernels.load("triton", torch.device(device))
    assert Kernels.load("torch", torch.device(device)).mode == "torch"


def test_a_device_without_triton_is_refused():
    with pytest.raises(RuntimeError, match="backend triton on meta: need a cpu or cuda device"):
        Kernels.load("triton", torch.device("meta"))
    assert Kernels.load("torch", torch.device("meta")).mode == "torch"


def test_an_unknown_backend_is_refused(s):
    with pytest.raises(ValueError, match="backend 'cuda', need one of torch, triton"):
        Kernels.load("cuda", s.DEVICE)


def test_the_mode_says_how_the_kernels_run(s, twins):
    compiled = "triton-compiled" if s.ON_CUDA else "triton-interpreted"
    assert [kernels.mode for kernels in twins] == ["torch", compiled]


def test_a_subclass_replaces_one_operation(s, tiny):
    class Forgetful(Kernels):
        def fold(self, *args, **kwargs):
            pass

    pool = s.Pool(tiny, slots=1, ring=1)
    states = []
    for kind in (Forgetful, Kernels):
        kernels, own = kind.load("torch", s.DEVICE), pool.copy()
        assert type(kernels) is kind
        s.fill(kernels, own, [0], [1], tiny, s.gates(tiny))
        kernels.fold(**own.tensors(), slots=s.ints(0), counts=s.ints(1))
        states.append(own.temporal)
    assert s.same_bits(states[0], pool.temporal)
    assert not s.same_bits(states[1], pool.temporal)


def test_every_launch_is_counted_by_operation_and_mode(s, kernels, tiny):
    pool = s.Pool(tiny, slots=1, ring=2)
    x = {**s.tokens(tiny, 1, seed=0), **s.gates(tiny)}
    channels = torch.ones(1, 4, device=s.DEVICE)
    weight, conv = torch.ones(4, 3, device=s.DEVICE), torch.ones(1, 4, 2, device=s.DEVICE)
    for _ in range(2):
        kernels.packed_decode(**x, temporal=pool.temporal[0], slots=s.ints(0))
    kernels.replay_decode(**x, **pool.layer(), write_pos=s.ints(0), slots=s.ints(0))
    kernels.fold(**pool.tensors(), slots=s.ints(0), counts=s.ints(1))
    kernels.conv_step(channels, weight, conv, s.ints(0))
    kernels.conv_prefill(channels, weight, conv, s.ints(0), s.ints(0, 1))
    kernels.prefill(**x, temporal=pool.temporal[0], slots=s.ints(0), cu_seqlens=s.ints(0, 1))
    window = {name: x[name][:, None] for name in ("q", "k", "v", "a", "b")}
    one = {"slots": s.ints(0), "lengths": s.ints(1)}
    kernels.verify(**{**x, **window}, **pool.layer(), write_pos=s.ints(0), **one)
    _, extended = kernels.conv_verify(channels[:, None], weight, conv, **one)
    kernels.conv_at(extended, 3, s.ints(1))
    buffers = {name: x[name][None, None] for name in ("k", "v", "a", "b")}
    params = {name: x[name][None] for name in ("A_log", "dt_bias")}
    kernels.kv_replay(pool.temporal, **buffers, **params, slots=s.ints(0), counts=s.ints(1))
    mode = kernels.mode
    assert kernels.launches == {
        f"packed_decode[{mode}]": 2,
        f"replay_decode[{mode}]": 1,
        f"fold[{mode}]": 1,
        f"conv_step[{mode}]": 1,
        f"conv_prefill[{mode}]": 1,
        f"verify[{mode}]": 1,
        f"conv_verify[{mode}]": 1,
        f"kv_replay[{mode}]": 1,
        "prefill[torch]": 1,
    }


def test_counters_belong_to_one_object(s, tiny):
    first, second = Kernels.load("torch", s.DEVICE), Kernels.load("torch", s.DEVICE)
    pool = s.Pool(tiny, slots=1, ring=1)
    first.packed_decode(
        **s.tokens(tiny, 1, seed=0), **s.gates(tiny), temporal=pool.temporal[0], slots=s.ints(0)
    )
    assert first.launches
    assert not second.launches
