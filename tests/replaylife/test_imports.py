"""What a command imports, and what it does not."""

from __future__ import annotations

import pytest

import replaylife

from .command import invoke, python

HEAVY = ("torch", "triton", "pydantic", "ruamel", "numpy")


def _modules_after(code: str) -> set[str]:
    script = (
        f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nprint(*sys.modules, file=sys.stderr)"
    )
    done = python("-c", script)
    return {name.partition(".")[0] for name in done.stderr.split()}


def test_help_imports_nothing_heavy() -> None:
    modules = _modules_after("from replaylife.cli import main; main(['--help'])")
    assert "replaylife" in modules
    assert modules.isdisjoint({*HEAVY, "rich"})


def test_a_run_on_the_ledger_does_not_import_torch() -> None:
    modules = _modules_after(
        "from replaylife.cli import main; main(['run', 'multiturn', '--backend', 'none'])"
    )
    assert "rich" in modules
    assert modules.isdisjoint({"torch", "triton"})


@pytest.mark.parametrize("words", [["size"], ["traffic"], ["replay", "--limit", "2"]], ids=str)
def test_planning_imports_no_torch(words: list[str]) -> None:
    modules = _modules_after(f"from replaylife.cli import main; main({words!r})")
    assert "replaylife" in modules
    assert modules.isdisjoint({"torch", "triton", "matplotlib"})


def test_a_run_on_tensors_does_import_torch() -> None:
    code = "from replaylife.cli import main; main(['run', 'checkpoint-mid-ring', '--backend', 'torch'])"
    assert "torch" in _modules_after(code)


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert _modules_after("import replaylife; replaylife.__version__").isdisjoint(HEAVY)


@pytest.mark.parametrize("name", replaylife.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(replaylife, name) is not None
    assert name in dir(replaylife)


def test_no_other_name_can_be_had() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Palyer'"):
        replaylife.Palyer  # noqa: B018


def test_the_version_is_the_package_s() -> None:
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.stdout.strip() == f"replaylife, version {replaylife.__version__}"
