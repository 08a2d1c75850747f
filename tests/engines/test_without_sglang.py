"""Where SGLang is missing, or not the one that the adapter knows: what is said, and what goes on working."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch
from click.testing import CliRunner

from replaylife.cli import main
from replaylife.engines import ENGINES, EngineUnavailable, adapter_of
from replaylife.engines.sglang import absent, classes
from replaylife.engines.sglang.kernels import Kernels, Row
from replaylife.lifecycle.config import CacheConfig, EngineConfig
from replaylife.lifecycle.protocol import CannotExpress
from replaylife.pool import EMPTY, Record


@pytest.fixture
def no_sglang(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(classes, "version", nothing)
    monkeypatch.setattr(classes, "find_spec", lambda _: None)


def _invoke(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(args))
    return result.exit_code, result.stderr


@pytest.mark.usefixtures("no_sglang")
@pytest.mark.parametrize("command", [("run", "multiturn", "--engine", "sglang"), ("conformance",)])
def test_the_message_names_the_extra(command: tuple[str, ...]) -> None:
    code, said = _invoke(*command)
    assert code == 2
    assert "pip install 'replaylife[sglang]'" in said
    assert "Traceback" not in said


@pytest.mark.usefixtures("no_sglang")
def test_the_reference_engine_does_not_ask_for_it() -> None:
    assert _invoke("run", "multiturn", "--backend", "none", "--quiet")[0] == 0


def test_an_unknown_engine_names_the_nearest() -> None:
    code, said = _invoke("run", "multiturn", "--engine", "sglagn")
    assert code == 2
    assert "did you mean 'sglang'" in said


@pytest.mark.parametrize(
    "option",
    [("--fault", "donate-live-conv"), ("--witness",), ("--backend", "torch"), ("--state-dtype", "bf16")],
)
def test_options_of_the_reference_engine_are_refused_with_another(option: tuple[str, ...]) -> None:
    code, said = _invoke("run", "multiturn", "--engine", "sglang", *option)
    assert code == 2
    assert "is for the reference engine" in said


def test_a_release_without_the_attributes_is_refused_with_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(classes, "version", lambda _: "0.5.17")
    monkeypatch.setattr(classes, "import_module", lambda name: SimpleNamespace(__name__=name))
    with pytest.raises(EngineUnavailable, match=r"SGLang 0.5.17 .*supported: 0.5.23.*lacks .*ServerArgs"):
        classes.load.__wrapped__()


def test_the_torch_that_a_release_asks_for_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "version", lambda _: "2.11.0")
    monkeypatch.setattr(classes, "requires", lambda _: ["torchvision", "torch==2.14.1; extra == 'x'"])
    assert classes.torch_here() == "torch 2.11.0 (SGLang asks for torch==2.14.1)"
    monkeypatch.setattr(classes, "requires", lambda _: None)
    assert classes.torch_here() == "torch 2.11.0"


@pytest.mark.parametrize(
    ("cache", "reason"),
    [
        (CacheConfig(strategy="align", page=4), "strategy align"),
        (CacheConfig(strategy="extra_buffer", page=4), "page"),
        (CacheConfig(overlap=True), "overlap"),
        (CacheConfig(graph_rows=4), "graph"),
        (CacheConfig(finish="fold"), "finish fold"),
    ],
)
def test_what_cannot_be_expressed_is_refused_with_the_reason(cache: CacheConfig, reason: str) -> None:
    with pytest.raises(CannotExpress, match=reason):
        adapter_of("sglang").build(EngineConfig(cache=cache))


def test_what_can_be_expressed_is_not_refused() -> None:
    assert list(ENGINES) == ["sglang", "sglang-rust"]
    for cache in (CacheConfig(), CacheConfig(strategy="extra_buffer"), CacheConfig(replayssm=False)):
        assert adapter_of("sglang").inexpressible(EngineConfig(cache=cache)) is None


# -- stand-ins -----------------------------------------------------------------------------------------


def test_nothing_is_changed_where_no_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absent, "PACKAGES", ("json", "torch"))
    before, modules = list(sys.meta_path), dict(sys.modules)
    with absent.stand_ins() as missing:
        assert missing == ()
        assert sys.meta_path == before
    assert sys.modules.keys() >= modules.keys()
    assert "sglang" not in sys.modules or sys.modules["sglang"] is modules.get("sglang")


def test_a_missing_package_can_be_imported_inside_and_is_missing_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(absent, "PACKAGES", ("json", "no_such_package"))
    monkeypatch.setattr(absent, "HOLLOW", ("no_such_server", "no_such_server.configs"))
    before = list(sys.meta_path)
    with absent.stand_ins() as missing:
        assert missing == ("no_such_package",)
        from no_such_package.deep import Kind, call

        assert issubclass(type("Made", (Kind,), {}), Kind)
        assert call(len) is len
    assert sys.meta_path == before
    assert find_spec("no_such_package") is None
    assert not [name for name in sys.modules if name.startswith("no_such_package")]
    for name in ("no_such_server", "no_such_server.configs"):
        del sys.modules[name]


# -- what the kernels write ----------------------------------------------------------------------------


def _pool(ring: int | None = 4) -> SimpleNamespace:
    return SimpleNamespace(
        linear_replayssm_cache_len=ring,
        replayssm_write_pos=None if ring is None else torch.zeros(3),
        mamba_cache=SimpleNamespace(
            temporal=torch.zeros(2, 3, 1, 8, 4),
            conv=[torch.zeros(2, 3, 16, 3, dtype=torch.bfloat16)],
            replayssm_d=torch.zeros(2, 3, 1, ring or 1, 8),
        ),
    )


def test_tensors_spell_what_they_have_absorbed_in_every_dtype() -> None:
    kernels = Kernels(_pool(), ["a"])
    tokens = tuple(range(60_000, 60_300))
    kernels.extend(Row(1, 1, 0, tokens), initial=False)
    assert kernels.temporal(1) == kernels.conv(1) == EMPTY.after(tokens)
    assert kernels.temporal(2) == EMPTY


def test_a_decode_kernel_moves_the_window_and_keeps_temporal_until_the_ring_is_full() -> None:
    kernels = Kernels(_pool(), ["a"])
    for position in range(4):
        (folded,) = kernels.decode([Row(1, 1, position, (position + 5,))], [position], [0])
        assert folded == (4 if position == 3 else 0)
        assert kernels.conv(1).length == position + 1
        assert kernels.temporal(1).length == folded
    assert kernels.ring(1, 2) == (Record("a", 0, 5), Record("a", 1, 6))


def test_a_forced_flush_folds_what_is_there() -> None:
    kernels = Kernels(_pool(), ["a"])
    kernels.decode([Row(1, 1, 0, (5,))], [0], [0])
    assert kernels.decode([Row(1, 1, 1, (6,))], [1], [1]) == [2]
    assert kernels.temporal(1) == EMPTY.after((5, 6))


def test_an_extend_kernel_does_not_see_the_ring() -> None:
    kernels = Kernels(_pool(), ["a"])
    kernels.decode([Row(1, 1, 0, (5,))], [0], [0])
    kernels.extend(Row(1, 1, 1, (6,)), initial=True)
    assert kernels.temporal(1) == EMPTY.after((6,))
    assert kernels.conv(1) == EMPTY.after((5, 6))


def test_without_a_ring_every_decode_step_writes_temporal() -> None:
    kernels = Kernels(_pool(None), ["a"])
    assert kernels.decode([Row(1, 1, 0, (5,))], None, None) == [0]
    assert kernels.temporal(1) == EMPTY.after((5,))
