"""Reads a scenario's YAML 1.2 into plain data with the line of every part, and says what does not belong.

The parser's events are read one by one, so that depth, aliases and tags are met before anything is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from replaylife.lifecycle.scenario.errors import Problem

MAX_BYTES = 150_000  # a pure Python parser takes about a second for these
MAX_DEPTH = 12
MAX_DIGITS = 40

Path: TypeAlias = tuple[Any, ...]

_NO_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(slots=True)
class Document:
    """Plain data, the line (from 1) of every path in it, and the mistakes met on the way.

    ``readable`` is False where reading stopped, so that ``data`` is only the part before.
    """

    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    readable: bool = True

    def line_of(self, path: Path) -> int:
        """Return the line of the deepest part of ``path`` that the document has."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_document(raw: bytes) -> Document:
    """Read the bytes of a scenario file. Never raises: what is wrong is in the document's problems."""
    if len(raw) > MAX_BYTES:
        return _unreadable(1, f"the file has more than {MAX_BYTES:,} bytes; is it a scenario?")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        return _unreadable(line, f"found byte 0x{raw[error.start]:02x}, need UTF-8 text; is it a scenario?")
    odd = _NO_TEXT.search(text)
    if odd is not None:
        line = text.count("\n", 0, odd.start()) + 1
        return _unreadable(line, f"found character U+{ord(odd[0]):04X}, need text; is it a scenario?")
    return _Builder().build(text)


def _unreadable(line: int, message: str) -> Document:
    return Document(problems=[Problem(line, message)], readable=False)


class _NestedTooDeepError(Exception):
    """Nothing that comes after this can be a scenario."""


class _Builder:
    """Builds one document from events. ``_open`` are the collections begun and not ended, outermost first."""

    def __init__(self) -> None:
        self._document = Document()
        self._open: list[tuple[Path, Any]] = []
        self._keys: list[Any] = []
        self._started = False
        self._line = 1

    def build(self, text: str) -> Document:
        try:
            for event in self._events(text):
                if isinstance(event, DocumentStartEvent) and self._starts_again(event):
                    break
                self._take(event)
        except _NestedTooDeepError:
            self._document.readable = False
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._stop(1 if mark is None else mark.line + 1, _in_our_words(error))
        except Exception as error:  # a defect of the parser, met through an odd file: the file's problem too
            self._stop(
                self._line, f"not YAML: {(str(error).strip() or type(error).__name__).splitlines()[0]}"
            )
        return self._document

    def _events(self, text: str) -> Iterator[Event]:
        yield from YAML(typ="safe", pure=True).parse(text)

    def _stop(self, line: int, message: str) -> None:
        self._complain(line, message)
        self._document.readable = False

    def _complain(self, line: int, message: str) -> None:
        self._document.problems.append(Problem(line, message))

    def _starts_again(self, event: DocumentStartEvent) -> bool:
        line = event.start_mark.line + 1
        if self._started:
            self._complain(line, "a second document begins here, need one scenario to a file")
            return True
        self._started = True
        if event.version not in (None, (1, 2)):
            self._complain(line, f"found YAML {'.'.join(map(str, event.version))}, need 1.2; delete the line")
        return False

    def _take(self, event: Event) -> None:
        if isinstance(event, NodeEvent):
            self._check(event)
        self._line = line = event.start_mark.line + 1
        if isinstance(event, MappingStartEvent):
            self._begin({}, line)
        elif isinstance(event, SequenceStartEvent):
            self._begin([], line)
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            self._open.pop()
            self._keys.pop()
        elif isinstance(event, ScalarEvent):
            self._put(_resolve(event.value) if event.style is None else event.value, line)
        elif isinstance(event, AliasEvent):
            self._put(None, line)

    def _check(self, event: NodeEvent) -> None:
        """Complain of what YAML has and a scenario does not."""
        line = event.start_mark.line + 1
        if isinstance(event, AliasEvent):
            self._complain(line, f"found the alias *{event.anchor}, need the value itself; write it out here")
        elif event.anchor is not None:
            self._complain(line, f"found the anchor &{event.anchor}, need none; delete it")
        tag = getattr(event, "tag", None)
        if tag is not None:
            written = str(tag).replace("tag:yaml.org,2002:", "!!")
            self._complain(line, f"found the tag {written[:60]}, need none; delete it")

    def _begin(self, collection: Any, line: int) -> None:
        if len(self._open) >= MAX_DEPTH:
            self._complain(line, f"nested deeper than {MAX_DEPTH} levels, as no scenario is")
            raise _NestedTooDeepError
        path = self._put(collection, line)
        self._open.append((path, collection))
        self._keys.append(_NO_KEY)

    def _put(self, value: Any, line: int) -> Path:
        """Put a value where the next one belongs: the document itself, a list, a mapping's key or value."""
        if not self._open:
            self._document.data = value
            self._document.lines[()] = line
            return ()
        path, collection = self._open[-1]
        if isinstance(collection, list):
            collection.append(value)
            at = (*path, len(collection) - 1)
            self._document.lines[at] = line
            return at
        if self._keys[-1] is _NO_KEY:
            self._keys[-1] = self._key(path, collection, value, line)
            return (*path, _DROPPED)
        key, self._keys[-1] = self._keys[-1], _NO_KEY
        if key is not _DROPPED:
            collection[key] = value
        return (*path, key)

    def _key(self, path: Path, collection: dict[Any, Any], key: Any, line: int) -> Any:
        """Return the key to file the next value under; the first of two equal ones stays."""
        if isinstance(key, dict | list):
            kind = "mapping" if isinstance(key, dict) else "list"
            self._complain(line, f"found a {kind} as a key, need a name")
            return _DROPPED
        if key == "<<":
            self._complain(line, "found the merge key <<, need the keys themselves; write them out here")
            return _DROPPED
        if key in collection:
            first = self._document.lines[*path, key]
            self._complain(line, f"key {repr(key)[:60]} stands in line {first} already; delete one of them")
            return _DROPPED
        self._document.lines[*path, key] = line
        collection[key] = None
        return key


_NO_KEY, _DROPPED = object(), object()


def _resolve(value: str) -> Any:
    """Return what a plain scalar means in YAML 1.2's core schema."""
    if value in _CONSTANTS:
        return _CONSTANTS[value]
    if len(value) <= MAX_DIGITS:
        if _INT.fullmatch(value):
            return int(value, {"0o": 8, "0x": 16}.get(value[:2], 10))
        if _FLOAT.fullmatch(value):
            return float(value.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return value


def _in_our_words(error: MarkedYAMLError) -> str:
    problem = (error.problem or "unreadable").strip().splitlines()[0]
    if "'\\t'" in problem:
        return "found a tab, need spaces; YAML is indented with spaces"
    context = (error.context or "").strip().splitlines()
    return f"not YAML: {problem}{f', {context[0]}' if context else ''}"
