"""The JSON Schema of one line of a trace, from the same type hints as its reader and writer."""

from __future__ import annotations

from replaylife.lifecycle.trace import changes as _registers_changes  # noqa: F401 - gives Changes its form
from replaylife.lifecycle.trace.codec import Definitions, Json, tagged
from replaylife.lifecycle.trace.lines import FORMAT, KINDS, VERSION

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def trace_schema() -> Json:
    """Return the JSON Schema that every line of a trace of this version satisfies."""
    definitions: Definitions = {}
    lines = tagged(KINDS).describe(definitions)
    header = definitions["Header"]["properties"]
    header["format"], header["version"] = {"const": FORMAT}, {"const": VERSION}
    definitions["Header"]["required"] += ["format", "version"]
    return {
        "$schema": DIALECT,
        "title": "One line of a replaylife trace",
        "description": "A trace is a file of JSON Lines: a header, a keyframe, steps and expectations with a "
        "keyframe now and then, and a verdict.",
        **lines,
        "$defs": definitions,
    }
