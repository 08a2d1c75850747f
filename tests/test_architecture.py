"""What may import what, and how large things may grow: read off the source, nothing is imported.

Each rule is a function from modules to complaints; each has a planted counterexample that it must catch.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BELOW = {
    "replaylife": {"lifecycle", "pool", "radix", "kernels", "scenarios", "engines"},
    "engines": {"lifecycle", "pool", "radix", "kernels"},
    "lifecycle": {"pool", "radix", "kernels"},
    "pool": {"kernels"},
    "radix": {"kernels"},
    "kernels": set(),
    "scenarios": set(),
}
MAY_LOAD = {
    "torch": (
        "kernels/*_torch.py",
        "kernels/bench/*.py",
        "kernels/*_triton.py",
        "kernels/binding.py",
        "kernels/checks.py",
        "kernels/window_checks.py",
        "pool/tensors.py",
        "lifecycle/model/*.py",
    ),
    "triton": ("kernels/*_triton.py",),
}
KNOWS_FAULTS = ("lifecycle/faults/*", "lifecycle/factory.py", "lifecycle/scenario/*", "replaylife/*")
MAX_FUNCTION, MAX_FILE = 70, 320
MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(home|Users|root|work|workspace|mnt|tmp|scratch)/\w|\b[A-Z]:\\\w")


@dataclass(frozen=True)
class Import:
    """One name imported; ``lazy`` inside a function, ``typing`` under ``if TYPE_CHECKING``."""

    target: str
    line: int
    lazy: bool
    typing: bool


@dataclass(frozen=True)
class Module:
    """A product file: its path below the root, its dotted name, its text and its syntax tree."""

    path: str
    name: str
    source: str
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def layer(self) -> str:
        return self.path.split("/")[0]


class _Collector(ast.NodeVisitor):
    """Collects imports, relative ones resolved, dynamic ones with a constant name included."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._lazy = self._typing = False
        self.found: list[Import] = []

    def _add(self, target: str, line: int) -> None:
        self.found.append(Import(target, line, self._lazy, self._typing))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            parts = self._package.split(".")
            base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])
        for alias in node.names:
            self._add(f"{base}.{alias.name}", node.lineno)

    def visit_Call(self, node: ast.Call) -> None:
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        first = node.args[0] if node.args else None
        if called in ("import_module", "__import__") and isinstance(first, ast.Constant):
            name = str(first.value)
            self._add(self._package + name if name.startswith(".") else name, node.lineno)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        outer = self._typing
        self._typing = outer or "TYPE_CHECKING" in ast.dump(node.test)
        for child in node.body:
            self.visit(child)
        self._typing = outer
        for child in (node.test, *node.orelse):
            self.visit(child)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outer, self._lazy = self._lazy, True
        self.generic_visit(node)
        self._lazy = outer

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815


def _module(root: Path, file: Path) -> Module:
    path = file.relative_to(root).as_posix()
    parts = path.removesuffix(".py").split("/")
    parts = parts if parts[0] == "replaylife" else ["replaylife", *parts]
    is_package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if is_package else parts)
    source = file.read_text(encoding="utf-8")
    tree = ast.parse(source, str(file))
    collector = _Collector(name if is_package else name.rpartition(".")[0])
    collector.visit(tree)
    return Module(path, name, source, tree, tuple(collector.found))


def load(root: Path) -> list[Module]:
    """Parse all product files below ``root``."""
    return [_module(root, file) for layer in BELOW for file in sorted((root / layer).rglob("*.py"))]


def _layer_of(target: str) -> str | None:
    parts = target.split(".")
    if parts[0] != "replaylife":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in BELOW else "replaylife"


def wrong_direction(modules: Iterable[Module]) -> Iterator[str]:
    """Imports that point up or sideways, lazy ones and those for annotations included."""
    for module in modules:
        for found in module.imports:
            layer = _layer_of(found.target)
            if layer not in (None, module.layer) and layer not in BELOW[module.layer]:
                yield f"{module.path}:{found.line} {module.layer} imports {found.target}"


def loaded_early(modules: Sequence[Module], library: str) -> dict[str, str]:
    """Product files whose import loads ``library``, directly or through another one, with the reason.

    What lies in functions or under ``TYPE_CHECKING`` does not count; packages above an imported module do.
    """
    names = {module.name: module for module in modules}
    eager = {
        module.path: [i.target for i in module.imports if not (i.lazy or i.typing)] for module in modules
    }
    heavy = {path: library for path, seen in eager.items() for t in seen if t.split(".")[0] == library}
    while True:
        spread = {
            path: names[prefix].path
            for path, seen in eager.items()
            for target in (*seen, *(m.name for m in modules if m.path == path))
            for prefix in _prefixes(target)
            if prefix in names and names[prefix].path in heavy and path not in heavy
        }
        if not spread:
            return heavy
        heavy |= spread


def _prefixes(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))]


def heavy_imports(modules: Sequence[Module]) -> Iterator[str]:
    """Files outside the allowed set that load torch or triton when they are imported."""
    for library, patterns in MAY_LOAD.items():
        for path, reason in loaded_early(modules, library).items():
            if not any(fnmatch(path, pattern) for pattern in patterns):
                yield f"{path} loads {library} through {reason}"


def unlisted_packages(root: Path, modules: Iterable[Module]) -> Iterator[str]:
    """Folders with Python files that pyproject.toml does not ship, and shipped ones that do not exist."""
    setup = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    listed, homes = set(setup["packages"]), dict(setup["package-dir"])
    folders = {Path(module.path).parent.as_posix() for module in modules}
    needed = {f if f.startswith("replaylife") else f"replaylife/{f}": f for f in folders}
    packages = {dotted.replace("/", "."): folder for dotted, folder in needed.items()}
    tops = {name: folder for name, folder in packages.items() if "/" not in folder}
    yield from (f"packages lacks {name}" for name in sorted(packages.keys() - listed))
    yield from (f"packages has {name}, no such folder" for name in sorted(listed - packages.keys()))
    yield from (f"package-dir lacks {n} = {f}" for n, f in sorted(tops.items()) if homes.get(n) != f)
    yield from (f"package-dir has {name}, no such folder" for name in sorted(homes.keys() - tops.keys()))
    strays = {file.parent.name for file in root.glob("*/__init__.py")} - BELOW.keys()
    yield from (f"{folder}: a package that no layer names" for folder in sorted(strays))


def long_functions(modules: Iterable[Module]) -> Iterator[str]:
    """Functions of more than 70 lines."""
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION:
                    yield f"{module.path}:{node.lineno} {node.name} has {lines} lines"


def long_files(modules: Iterable[Module]) -> Iterator[str]:
    """Files of more than 320 lines."""
    for module in modules:
        if (lines := len(module.source.splitlines())) > MAX_FILE:
            yield f"{module.path} has {lines} lines"


def machine_paths(modules: Iterable[Module]) -> Iterator[str]:
    """Absolute paths that exist on one machine only."""
    for module in modules:
        for number, line in enumerate(module.source.splitlines(), start=1):
            if MACHINE_PATH.search(line):
                yield f"{module.path}:{number} {line.strip()}"


def fault_switches(modules: Iterable[Module]) -> Iterator[str]:
    """Conditions on a fault outside the catalogue and what composes, parses or shows it."""
    for module in modules:
        if any(fnmatch(module.path, pattern) for pattern in KNOWS_FAULTS):
            continue
        for node in ast.walk(module.tree):
            tests = [getattr(node, "test", None), *getattr(node, "ifs", []), getattr(node, "subject", None)]
            words = {
                str(getattr(part, "id", getattr(part, "attr", "")))
                for test in tests
                if isinstance(test, ast.AST)
                for part in ast.walk(test)
            }
            if any("fault" in word.lower() and "default" not in word.lower() for word in words):
                yield f"{module.path}:{getattr(node, 'lineno', 0)} asks for a fault"


def without_docstring(modules: Iterable[Module]) -> Iterator[str]:
    """Public modules that do not say what they are."""
    for module in modules:
        private = Path(module.path).stem.startswith("_") and not Path(module.path).stem.startswith("__")
        if not private and not ast.get_docstring(module.tree):
            yield module.path


# -- the product ---------------------------------------------------------------------------------------

PRODUCT = load(ROOT)
RULES = (
    wrong_direction,
    heavy_imports,
    long_functions,
    long_files,
    machine_paths,
    fault_switches,
    without_docstring,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_product_keeps_the_rule(rule) -> None:  # type: ignore[no-untyped-def]
    assert list(rule(PRODUCT)) == []


def test_every_folder_with_python_is_shipped() -> None:
    assert list(unlisted_packages(ROOT, PRODUCT)) == []


def test_every_folder_of_the_package_is_a_package() -> None:
    """Folders of data, too: the type checker counts a folder without `__init__.py` as a source of its own."""
    folders = {path.parent for name in BELOW for path in (ROOT / name).rglob("*") if path.is_file()}
    kept = [folder for folder in folders if "__pycache__" not in folder.parts]
    assert [str(folder) for folder in kept if not (folder / "__init__.py").is_file()] == []
    assert len(kept) >= 20


def test_the_rules_have_seen_every_layer_and_its_imports() -> None:
    layers = {module.layer for module in PRODUCT}
    assert layers >= BELOW.keys() - {"engines"}
    inner = [i for m in PRODUCT for i in m.imports if _layer_of(i.target) not in (None, m.layer)]
    assert len(PRODUCT) >= 60
    assert len(inner) >= 60
    assert sum(isinstance(n, ast.FunctionDef) for m in PRODUCT for n in ast.walk(m.tree)) >= 250


@pytest.mark.parametrize(
    ("library", "pattern"), [(library, p) for library, patterns in MAY_LOAD.items() for p in patterns]
)
def test_the_allowed_set_is_no_wider_than_it_needs(library: str, pattern: str) -> None:
    assert any(fnmatch(path, pattern) for path in loaded_early(PRODUCT, library))


# -- planted counterexamples ---------------------------------------------------------------------------


def _plant(root: Path, files: dict[str, str]) -> list[Module]:
    """Write files with a docstring each, and parse them."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('"""Planted."""\n' + text, encoding="utf-8")
    return load(root)


LONG_BODY = "def f():\n" + "    x = 1\n" * 70
WRONG = {
    "up": (wrong_direction, "pool/x.py", "from replaylife.lifecycle.engine import ReferenceEngine"),
    "up, to the front door": (wrong_direction, "lifecycle/x.py", "from replaylife import EngineConfig"),
    "up, a subpackage by name": (wrong_direction, "pool/x.py", "from replaylife import lifecycle"),
    "up, for annotations": (
        wrong_direction,
        "kernels/x.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import replaylife.pool.mamba",
    ),
    "up, lazily": (wrong_direction, "radix/x.py", "def f():\n    from ..lifecycle import store"),
    "up, by import_module": (wrong_direction, "kernels/x.py", "import_module('replaylife.pool')"),
    "sideways, pool to radix": (wrong_direction, "pool/x.py", "from replaylife.radix import RadixTree"),
    "sideways, radix to pool": (wrong_direction, "radix/x.py", "import replaylife.pool"),
    "down to the adapters": (wrong_direction, "lifecycle/x.py", "import replaylife.engines.sglang"),
    "torch": (heavy_imports, "pool/x.py", "import torch"),
    "torch, a part of it": (heavy_imports, "pool/x.py", "from torch.nn import functional"),
    "torch in a class body": (heavy_imports, "pool/x.py", "class A:\n    import torch"),
    "torch when not typing": (
        heavy_imports,
        "pool/x.py",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import torch",
    ),
    "triton in a twin": (heavy_imports, "kernels/x_torch.py", "import triton.language as tl"),
    "a function": (long_functions, "pool/x.py", LONG_BODY),
    "a method": (long_functions, "pool/x.py", "class A:\n    async " + LONG_BODY.replace("\n", "\n    ")),
    "a file": (long_files, "pool/x.py", "x = 1\n" * 320),
    "a home": (machine_paths, "pool/x.py", "CACHE = '/home/someone/cache'"),
    "a scratch folder in a comment": (machine_paths, "pool/x.py", "x = 1  # see /tmp/notes"),
    "a switch": (fault_switches, "pool/x.py", "def f(self):\n    if self.fault == 'x': pass"),
    "a switch in an expression": (fault_switches, "lifecycle/x.py", "y = 1 if 'x' in faults else 2"),
    "a switch in a comprehension": (fault_switches, "radix/x.py", "y = [x for x in z if has_fault(x)]"),
    "a switch by match": (fault_switches, "pool/x.py", "match fault:\n    case 1: pass"),
}
RIGHT = {
    "down": (wrong_direction, "lifecycle/x.py", "from replaylife.pool import MambaPool\nimport json"),
    "within": (wrong_direction, "pool/x.py", "from .shape import PoolShape\nfrom replaylife.pool import y"),
    "adapters on the lifecycle": (wrong_direction, "engines/x.py", "import replaylife.lifecycle.engine"),
    "torch, lazily": (heavy_imports, "pool/x.py", "def f():\n    import torch"),
    "torch for annotations": (heavy_imports, "pool/x.py", "if TYPE_CHECKING:\n    import torch"),
    "torch where it may": (heavy_imports, "pool/tensors.py", "import torch"),
    "triton where it may": (heavy_imports, "kernels/x_triton.py", "import triton, torch"),
    "a function of 70 lines": (long_functions, "pool/x.py", LONG_BODY.removesuffix("    x = 1\n")),
    "a file of 320 lines": (long_files, "pool/x.py", "x = 1\n" * 319),
    "an address": (machine_paths, "pool/x.py", "URL = 'https://example.org/home/x'\nP = 'a/tmp/x'"),
    "a default": (fault_switches, "pool/x.py", "if default_x: pass\nfaults = ()"),
    "the factory": (fault_switches, "lifecycle/factory.py", "if fault not in FAULTS: pass"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_rule_catches_what_breaks_it(case: str, tmp_path: Path) -> None:
    rule, name, text = WRONG[case]
    (complaint,) = rule(_plant(tmp_path, {name: text}))
    assert complaint.startswith(name)


@pytest.mark.parametrize("case", RIGHT)
def test_a_rule_lets_pass_what_keeps_it(case: str, tmp_path: Path) -> None:
    rule, name, text = RIGHT[case]
    assert list(rule(_plant(tmp_path, {name: text}))) == []


def test_torch_is_found_through_other_files_and_through_the_package_above(tmp_path: Path) -> None:
    modules = _plant(
        tmp_path,
        {
            "pool/tensors.py": "import torch",
            "pool/a.py": "from replaylife.pool.tensors import PoolTensors",
            "radix/__init__.py": "from replaylife.pool import a",
            "radix/innocent.py": "import json",
            "lifecycle/lazy.py": "def f():\n    import replaylife.pool.a",
        },
    )
    assert {line.split()[0] for line in heavy_imports(modules)} == {
        "pool/a.py",
        "radix/__init__.py",
        "radix/innocent.py",
    }


def test_a_public_module_without_a_docstring_is_caught_and_a_private_one_is_not(tmp_path: Path) -> None:
    _plant(tmp_path, {"pool/x.py": "", "pool/_x.py": "", "pool/__init__.py": ""})
    for name in ("x", "_x", "__init__"):
        (tmp_path / f"pool/{name}.py").write_text("x = 1\n", encoding="utf-8")
    assert sorted(without_docstring(load(tmp_path))) == ["pool/__init__.py", "pool/x.py"]


PROJECT = """
[tool.setuptools]
packages = ["replaylife", "replaylife.pool"{more}]
[tool.setuptools.package-dir]
"replaylife" = "replaylife"
{homes}
"""


@pytest.mark.parametrize(
    ("more", "homes", "complaints"),
    [
        (', "replaylife.pool.deep"', '"replaylife.pool" = "pool"', []),
        ("", '"replaylife.pool" = "pool"', ["packages lacks replaylife.pool.deep"]),
        (', "replaylife.pool.deep"', "", ["package-dir lacks replaylife.pool = pool"]),
        (
            ', "replaylife.pool.deep", "replaylife.gone"',
            '"replaylife.pool" = "pool"\n"replaylife.gone" = "gone"',
            [
                "packages has replaylife.gone, no such folder",
                "package-dir has replaylife.gone, no such folder",
            ],
        ),
    ],
    ids=["complete", "folder not listed", "home not listed", "listed and gone"],
)
def test_a_folder_that_would_not_be_shipped_is_caught(
    more: str, homes: str, complaints: list[str], tmp_path: Path
) -> None:
    modules = _plant(
        tmp_path, {"replaylife/__init__.py": "", "pool/__init__.py": "", "pool/deep/__init__.py": ""}
    )
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(more=more, homes=homes), encoding="utf-8")
    assert list(unlisted_packages(tmp_path, modules)) == complaints


def test_a_top_level_package_that_is_in_no_layer_is_caught(tmp_path: Path) -> None:
    modules = _plant(
        tmp_path, {"replaylife/__init__.py": "", "pool/__init__.py": "", "stray/__init__.py": ""}
    )
    homes = '"replaylife.pool" = "pool"'
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(more="", homes=homes), encoding="utf-8")
    assert list(unlisted_packages(tmp_path, modules)) == ["stray: a package that no layer names"]
