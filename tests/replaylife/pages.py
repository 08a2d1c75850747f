"""The generated parts of ``docs/``, from the code itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from click.testing import CliRunner

from replaylife.cli import main
from replaylife.cli.program import COMMANDS
from replaylife.lifecycle.faults.mechanisms import Mechanism, mechanisms
from replaylife.lifecycle.scenario.schema import ScenarioFile
from replaylife.reference import entries

from . import pages_explore

BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def regenerated(page: str) -> str:
    """Return a page with its generated parts written anew."""
    return BLOCK.sub(lambda m: m[1] + "\n".join(["", *PARTS[m[2]](), "", m[3]]), page)


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |"


def _ids(names: Any, page: str = "") -> str:
    return ", ".join(f"[`{name}`]({page}#{name})" if page else f"`{name}`" for name in names) or "none"


def faults() -> Iterator[str]:
    rows = [
        [
            f'<a id="{e.id}"></a>`{e.id}`',
            f"**{e.title}.** {e.mechanism}",
            _ids(e.ledger, "invariants.md"),
            _ids(e.numeric, "invariants.md"),
            e.damage,
            f"[{e.scenario}](../scenarios/{e.scenario}.yaml)",
            f"[{e.source.split('github.com/')[1]}]({e.source})",
        ]
        for e in entries("fault")
    ]
    yield from _table(
        ["id", "what goes wrong", "from positions", "from tensors", "damage", "scenario", "reported"], rows
    )


def catalogue() -> Iterator[str]:
    """One line per mechanism, and how many there are of each outcome."""
    known = mechanisms().values()
    counts = Counter(mechanism.outcome for mechanism in known)
    said = [f"{counts[outcome]} {words}" for outcome, words in COUNTED.items() if counts[outcome]]
    yield f"{len(known)} mechanisms: {', '.join(said)}."
    yield ""
    rows = [[_reports(m), f"{m.title}.", _becomes(m)] for m in known]
    yield from _table(["reported", "what goes wrong", "here"], rows)


COUNTED = {
    "faults": "are seeded faults",
    "needs": "need what the engine does not have yet",
    "silent": "break no rule of the lifecycle",
    "outside": "are outside of the model",
}


def _reports(mechanism: Mechanism) -> str:
    first, *further = mechanism.sources
    links = [f"[{mechanism.id}]({first})", *(f"[{url.rpartition('/')[2]}]({url})" for url in further)]
    return ", ".join(links)


def _becomes(mechanism: Mechanism) -> str:
    says = {
        "faults": _ids(mechanism.faults, "faults.md"),
        "needs": f"needs {mechanism.needs}; the fault will replace {mechanism.fault}",
        "silent": f"silent: {mechanism.silent}",
        "outside": f"not expressible: {mechanism.outside}",
    }[mechanism.outcome]
    return f"{says} ({mechanism.note})" if mechanism.note else says


def invariants() -> Iterator[str]:
    rows = [
        [f'<a id="{e.id}"></a>`{e.id}`', e.claim, e.judged_from, _ids(e.tripped_by, "faults.md")]
        for e in entries("invariant")
    ]
    yield from _table(["id", "claim", "judged from", "broken at once by"], rows)


def library() -> Iterator[str]:
    rows = [[f"[{e.id}](../scenarios/{e.id}.yaml)", e.title, _ids(e.faults)] for e in entries("scenario")]
    yield from _table(["scenario", "what happens", "faults"], rows)


def commands() -> Iterator[str]:
    for name in COMMANDS:
        shown = (
            CliRunner().invoke(main, [name, "--help"], prog_name="replaylife", env={"COLUMNS": "80"}).stdout
        )
        yield from (f"## replaylife {name}", "", "```text", shown.rstrip(), "```", "")


# -- the scenario language -----------------------------------------------------------------------------


def reference() -> Iterator[str]:
    """Every section, step and expectation, from the JSON Schema: only what is described there is here."""
    schema = ScenarioFile.model_json_schema()
    models = schema["$defs"]
    yield from _model("### The file", schema)
    for section in ("model", "cache"):
        yield from _model(f"### `{section}`", _referred(schema["properties"][section], models))
    yield "### Steps"
    yield ""
    for key, step in models["Step"]["properties"].items():
        yield from _model(f"#### `{key}`", _referred(step, models))
    seen = {"ModelSection", "CacheSection", "Step"}
    parts = [name for name in models if name not in seen and f"#/$defs/{name}" not in _of_steps(models)]
    yield "### Parts"
    yield ""
    for name in parts:
        yield from _model(f"#### {name}", models[name])


def _of_steps(models: dict[str, Any]) -> set[str]:
    return {
        option["$ref"]
        for s in models["Step"]["properties"].values()
        for option in s["anyOf"]
        if "$ref" in option
    }


def _referred(field: dict[str, Any], models: dict[str, Any]) -> dict[str, Any]:
    options = [field, *field.get("anyOf", ()), *field.get("allOf", ())]
    name = next(option["$ref"] for option in options if "$ref" in option).rpartition("/")[2]
    model: dict[str, Any] = models[name]
    return model


def _model(title: str, model: dict[str, Any]) -> Iterator[str]:
    yield title
    yield ""
    yield model["description"].replace("``", "`")
    yield ""
    required = model.get("required", ())
    rows = []
    for name, field in model["properties"].items():
        default = "required" if name in required else _default(field)
        rows.append([f"`{name}`", _type(field), default, field.get("description", "")])
    yield from _table(["key", "value", "default", "meaning"], rows)
    yield ""


def _default(field: dict[str, Any]) -> str:
    value = field.get("default")
    if value is None or value == "":
        return ""
    return f"`{ {True: 'on', False: 'off'}.get(value, value) if isinstance(value, bool) else value }`"


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "$ref" in field:
        return field["$ref"].rpartition("/")[2]
    if "anyOf" in field:
        return " or ".join(_type(option) for option in field["anyOf"] if option.get("type") != "null")
    match field.get("type"):
        case "integer":
            low, high = field.get("minimum", ""), field.get("maximum", "")
            return f"{low}..{high}" if high != "" else f"{low} or more"
        case "array":
            return f"list of {_type(field['items'])}"
        case "object":
            keys = {
                "request": field.get("patternProperties"),
                "slot": {"": field.get("additionalProperties")},
            }
            key, values = next((key, found) for key, found in keys.items() if found)
            return f"{key}: {_type(next(iter(values.values())))}"
        case "boolean":
            return "on, off"
        case kind:
            return {"string": "text"}.get(str(kind), str(kind))


def explored() -> Iterator[str]:
    yield from _table(*pages_explore.scopes())


def shortest() -> Iterator[str]:
    yield from _table(*pages_explore.shortest())


PARTS = {
    "explored": explored,
    "shortest": shortest,
    "inexpressible": pages_explore.inexpressible,
    "faults": faults,
    "catalogue": catalogue,
    "invariants": invariants,
    "library": library,
    "commands": commands,
    "reference": reference,
}
