"""Lets SGLang's cache classes be imported where the packages of a serving machine are not installed.

Nothing happens where they are all there. Where some are missing, and only while the classes are imported,
stand-ins take the place of the missing packages and of the parts of SGLang that need them: model code,
servers and parsers, which no cache class uses. The installed files are not changed, and afterwards
``import requests`` fails as it did before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

PACKAGES = (
    *("IPython", "PIL", "dill", "einops", "orjson", "psutil", "pybase64", "requests", "sgl_kernel"),
    *("starlette", "tqdm", "transformers", "tvm_ffi", "zmq"),
)
"""What the import of the classes asks for, directly or not, and the classes themselves never call."""

UNUSED = (
    "sglang.srt.utils.hf_transformers",
    "sglang.srt.utils.hf_transformers_utils",
    "sglang.srt.parser",
    "sglang.srt.layers.attention.mamba.mamba",
    "sglang.srt.model_executor.model_runner",
)
"""Parts of SGLang that are left out where packages are missing."""

HOLLOW = ("sglang", "sglang.srt.configs", "sglang.srt.layers.quantization", "sglang.srt.connector")
"""Packages of SGLang whose ``__init__`` is left out; their modules are the real ones."""


class _Kind(type):
    def __getattr__(cls, name: str) -> int:
        """A member of a stand-in enumeration."""
        if name.startswith("__"):
            raise AttributeError(name)
        return 0


class _Nothing(metaclass=_Kind):
    """A stand-in for a class: can be made, inherited from, used in an annotation."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs


class StandIn(ModuleType):
    """A stand-in for a module or a function; has every name, does nothing, decorates to the same function."""

    __path__: list[str] = []  # noqa: RUF012 - a module's own attribute

    def __getattr__(self, name: str) -> Any:
        """Make up what is asked for; only dunder names are missing."""
        if name == "__version__":
            return "0"
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        made = _Kind(name, (_Nothing,), {}) if name[:1].isupper() else StandIn(full)
        setattr(self, name, made)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As a decorator, with or without arguments, return the function itself."""
        if len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]
        return lambda function=None, *_, **__: function

    def __getitem__(self, key: object) -> StandIn:
        return self

    def __bool__(self) -> bool:
        return False


class _Finder(MetaPathFinder, Loader):
    """Finds stand-ins for the given modules and everything below them."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(roots)

    def covers(self, name: str) -> bool:
        """Whether ``name`` is one of the roots or below one."""
        return any(name == root or name.startswith(f"{root}.") for root in self._roots)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the interface of a finder
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return the spec of a stand-in, ``None`` for what is none of ours."""
        return ModuleSpec(fullname, self, is_package=True) if self.covers(fullname) else None

    def create_module(self, spec: ModuleSpec) -> StandIn:
        """Return the stand-in."""
        return StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


def missing() -> tuple[str, ...]:
    """Return the packages that are not installed here."""
    return tuple(name for name in PACKAGES if name not in sys.modules and find_spec(name) is None)


@contextmanager
def stand_ins() -> Iterator[tuple[str, ...]]:
    """While inside, missing packages can be imported; yields which they are. Nothing is done if none is."""
    absent = missing()
    if not absent:
        yield absent
        return
    unused, packages = _Finder(UNUSED), _Finder(absent)
    if HOLLOW[0] not in sys.modules:
        sys.modules.update(_hollow_packages())
    sys.meta_path.insert(0, unused)
    sys.meta_path.append(packages)  # last: whatever is installed wins
    try:
        yield absent
    finally:
        sys.meta_path.remove(unused)
        sys.meta_path.remove(packages)
        for name in [name for name, module in sys.modules.items() if packages.covers(name)]:
            if isinstance(sys.modules[name], StandIn):
                del sys.modules[name]


def _hollow_packages() -> dict[str, StandIn]:
    """Return packages that have the real ones' folders and not their ``__init__``."""
    root = find_spec(HOLLOW[0])
    folders = [] if root is None else list(root.submodule_search_locations or ())
    made: dict[str, StandIn] = {}
    for name in HOLLOW:
        made[name] = StandIn(name)
        made[name].__path__ = ["/".join([folder, *name.split(".")[1:]]) for folder in folders]
    return made
