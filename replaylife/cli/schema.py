"""``replaylife schema``: the JSON Schema of what people and engines write."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click

HELP = """Print the JSON Schema of scenario files (the default), or of one line of a trace.

Editors with a YAML language server complete and check scenario files with it:

\b
  replaylife schema > scenario.schema.json
  # yaml-language-server: $schema=scenario.schema.json    (first line of a scenario)
"""

NAMES = {  # fields that hold a name from a catalogue: (class, field)
    ("ScenarioFile", "faults"): "faults",
    ("ViolationExpectation", "invariant"): "invariants",
    ("CacheSection", "strategy"): "strategies",
    ("CacheSection", "profile"): "profiles",
}
SWITCHES = {("ModelSection", "witness"), ("CacheSection", "replayssm"), ("CacheSection", "overlap")}
ONE_OF_ITS_KEYS = ("Step", "Evict")  # classes of which exactly one key is given


@click.command("schema", help=HELP, context_settings={"max_content_width": 100})
@click.argument(
    "kind", type=click.Choice(["scenario", "trace"]), default="scenario", metavar="[scenario|trace]"
)
def command(kind: str) -> None:
    """Print a schema; the parsed arguments come from click."""
    schema = scenario_schema() if kind == "scenario" else _trace_schema()
    click.echo(json.dumps(schema, indent=2, ensure_ascii=False))


def _trace_schema() -> Any:
    from replaylife.lifecycle.trace.schema import trace_schema

    return trace_schema()


def scenario_schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file, with names completed and fields described for editors."""
    from replaylife.lifecycle.scenario.schema import ScenarioFile
    from replaylife.lifecycle.trace.schema import DIALECT

    schema: dict[str, Any] = ScenarioFile.model_json_schema()
    schema = {"$schema": DIALECT, **schema, "title": "A replaylife scenario"}
    classes: dict[str, Any] = {"ScenarioFile": schema, **schema["$defs"]}
    for definition in classes.values():
        definition["description"] = _prose(definition["description"])
    for name, definition in classes.items():
        for field, found in definition.get("properties", {}).items():
            _without_null(found)
            _offer_names(found, (name, field))
            kind = classes.get(found.get("$ref", "").rpartition("/")[2], {})
            found["description"] = _prose(found.get("description", kind.get("description", "")))
        if name in ONE_OF_ITS_KEYS:
            definition |= {"minProperties": 1, "maxProperties": 1}
    return schema


def _prose(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def _without_null(field: dict[str, Any]) -> None:
    """A key that is left out when it has nothing to say need not be offered as null."""
    if "default" in field and field["default"] is None:
        del field["default"]
        kept = [kind for kind in field.pop("anyOf", []) if kind != {"type": "null"}]
        field |= kept[0] if len(kept) == 1 else {"anyOf": kept}


def _offer_names(field: dict[str, Any], place: tuple[str, str]) -> None:
    if place in NAMES:
        holder = field.get("items", field)
        holder |= {"enum": sorted(_catalogue(NAMES[place]))}
    if place in SWITCHES:
        field.pop("type", None)
        field["enum"] = [True, False, "on", "off"]


def _catalogue(name: str) -> Iterable[str]:
    from replaylife.lifecycle.faults import FAULTS
    from replaylife.lifecycle.invariants import INVARIANTS
    from replaylife.lifecycle.profiles import PROFILES
    from replaylife.lifecycle.strategies import STRATEGIES

    known: dict[str, Iterable[str]] = {
        "faults": FAULTS,
        "invariants": INVARIANTS,
        "strategies": STRATEGIES,
        "profiles": PROFILES,
    }
    return known[name]
