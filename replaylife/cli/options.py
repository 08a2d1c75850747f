"""From a command line and a scenario to the configuration of an engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from replaylife.cli.errors import CannotWork
from replaylife.cli.locate import readable_path
from replaylife.engines import ENGINES, EngineUnavailable, adapter_of
from replaylife.lifecycle.config import BackendName, EngineConfig, ModelConfig
from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.names import nearest
from replaylife.lifecycle.protocol import CannotExpress
from replaylife.lifecycle.scenario.errors import ScenarioError
from replaylife.lifecycle.scenario.loader import Scenario, load_scenario
from replaylife.lifecycle.scenario.rehearsal import rehearse
from replaylife.pool import DType, Gate
from replaylife.view.heading import REFERENCE, Run

INSTALL = {"torch": ("torch",), "triton": ("torch", "triton")}


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says about the engine; ``None`` leaves a choice to the scenario."""

    engine: str = REFERENCE
    backend: str = "auto"
    device: str = "auto"
    faults: tuple[str, ...] = ()
    witness: bool = False
    gate: Gate | None = None
    state_dtype: DType | None = None
    trace: str | None = None
    force: bool = False

    def check_trace(self, num_scenarios: int) -> None:
        """Raise :class:`CannotWork` for a trace that could not be written where it is wanted."""
        if self.trace is None:
            if self.force:
                raise CannotWork(
                    "--force lets --trace replace a file: give --trace FILE too, or leave it out"
                )
            return
        if num_scenarios > 1:
            raise CannotWork(
                f"--trace records one run, and {num_scenarios} scenarios are given; run them one by one"
            )
        from replaylife.lifecycle.trace.errors import TraceExists
        from replaylife.lifecycle.trace.writer import require_writable

        try:
            require_writable(Path(self.trace), force=self.force)
        except TraceExists as error:
            raise CannotWork(f"--trace {error}") from None

    def check(self) -> None:
        """Raise :class:`CannotWork` for options that no scenario could satisfy."""
        for fault in self.faults:
            if fault not in FAULTS:
                raise CannotWork(f"no fault is named {fault!r}{nearest(fault, FAULTS)}")
        if self.engine != REFERENCE:
            self._check_engine()
            return
        if self.witness and self.backend == "none":
            raise CannotWork(
                "--witness makes tensors say what they have absorbed, and --backend none has no tensors; "
                "choose --backend torch or triton"
            )
        if self.device != "auto" and self.backend == "none":
            raise CannotWork(
                f"--device {self.device}: --backend none uses no device; leave one of the two out"
            )

    def _check_engine(self) -> None:
        """Raise :class:`CannotWork` for an engine that is not there, or options that only ours has."""
        if self.engine not in ENGINES:
            known = (REFERENCE, *ENGINES)
            raise CannotWork(f"no engine is named {self.engine!r}{nearest(self.engine, known)}")
        given = {
            "--fault": bool(self.faults),
            "--witness": self.witness,
            "--state-dtype": self.state_dtype is not None,
            f"--backend {self.backend}": self.backend not in ("auto", "none"),
        }
        for option, is_given in given.items():
            if is_given:
                raise CannotWork(f"{option} is for the reference engine, not for --engine {self.engine}")

    def engine_title(self) -> str:
        """Return what the engine calls itself. Raises :class:`CannotWork` if it is not installed here."""
        try:
            return "" if self.engine == REFERENCE else adapter_of(self.engine).title
        except EngineUnavailable as error:
            raise CannotWork(f"--engine {self.engine}: {error}") from None

    def backend_name(self) -> BackendName:
        """Return the backend meant. Raises :class:`CannotWork` if a package that it needs is missing."""
        name: BackendName = "triton"
        if self.backend == "none" or self.engine != REFERENCE:
            return "none"
        if self.backend == "torch":
            name = "torch"
        missing = [package for package in INSTALL[name] if find_spec(package) is None]
        if missing:
            raise CannotWork(
                f"backend {name} needs {' and '.join(missing)}, not installed here; pip install "
                f"{' '.join(missing)}, or run without tensors: --backend none"
            )
        return name

    def device_name(self, backend: BackendName) -> str:
        """Return the device meant. Raises :class:`CannotWork` if it cannot be used.

        ``auto`` is the CPU for another project's engine: its books need no GPU.
        """
        if self.device == "auto" and self.engine != REFERENCE:
            return "cpu"
        if self.engine == REFERENCE and backend == "none":
            return "cpu"
        import torch

        if self.device == "auto":
            return "cuda" if torch.cuda.is_available() else "cpu"
        try:
            torch.empty(1, device=self.device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise CannotWork(f"--device {self.device} cannot be used: {reason}") from None
        return self.device

    def model(self, model: ModelConfig) -> ModelConfig:
        """Return the scenario's model with what the command line overrides."""
        return replace(
            model,
            witness=self.witness or model.witness,
            gate=self.gate or model.gate,
            state_dtype=self.state_dtype or model.state_dtype,
        )

    def command(self, argument: str, backend: BackendName, device: str) -> tuple[str, ...]:
        """Return the command that repeats one run, whatever ``auto`` would mean elsewhere."""
        words = ["replaylife", "run", argument]
        words += ["--backend", backend] if self.engine == REFERENCE else ["--engine", self.engine]
        if device != "cpu" or (backend != "none" and self.device != "auto"):
            words += ["--device", device]
        for fault in self.faults:
            words += ["--fault", fault]
        words += ["--witness"] if self.witness else []
        words += ["--gate", self.gate] if self.gate else []
        words += ["--state-dtype", self.state_dtype] if self.state_dtype else []
        return tuple(words)


def prepare(argument: str, path: Path, options: Options) -> tuple[Scenario, Run]:
    """Read a scenario and settle what it runs on.

    Raises :class:`ScenarioError` for a scenario that cannot be played, with these options or at all,
    :class:`CannotWork` for options that cannot be met here, and :class:`CannotExpress` for a scenario that
    the engine does not have.
    """
    scenario = load_scenario(path)
    model = options.model(scenario.model)
    if model != scenario.model:
        problems = rehearse(model, [(entry.line, entry.step) for entry in scenario.steps])
        if problems:
            raise ScenarioError(str(path), problems)
        scenario = replace(scenario, model=model)
    backend = options.backend_name()
    title = options.engine_title()
    device = options.device_name(backend)
    if options.engine != REFERENCE and scenario.faults:
        raise CannotExpress(f"it seeds {', '.join(scenario.faults)}, a fault of the reference engine's code")
    run = Run(
        name=scenario.name,
        title=scenario.title,
        path=readable_path(path),
        config=EngineConfig(scenario.model, scenario.cache, backend, device),
        faults=tuple(dict.fromkeys((*scenario.faults, *options.faults))),
        command=options.command(argument, backend, device),
        engine=options.engine,
        engine_title=title,
    )
    return scenario, run
