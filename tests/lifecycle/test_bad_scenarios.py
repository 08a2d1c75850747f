"""Every mistake in a scenario file is told: its line, what was found, what is needed, the nearest name."""

# ruff: noqa: E501 - the table has one row per case

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from replaylife.cli import main
from replaylife.lifecycle.scenario.errors import MAX_PROBLEMS, ScenarioError
from replaylife.lifecycle.scenario.loader import load_scenario
from replaylife.lifecycle.scenario.reading import MAX_BYTES, MAX_DEPTH, read_document

GOOD = """\
title: One request
cache: {slots: 4}
steps:
  - admit: {request: a, prompt: 4}
  - prefill: {request: a}
  - decode: {request: a, n: 2}
  - finish: {request: a}
"""
NAME = "a name: up to 64 letters, digits, '_', '.', '-', the first a letter or digit"
NEED = "a mapping with 'title' and 'steps'"
MERGE = "found the merge key <<, need the keys themselves; write them out here"
ONE_KEY = (
    "a step has exactly one key (admit, prefill, decode, batch, verify, draft, schedule, execute, commit, "
    "overlap, checkpoint, finish, fold, retract, resume, retry, abort, evict, match, offload, load, transfer, "
    "arrive, abort_copy, cancel, end_session, expect), found abort, finish"
)

# (what is replaced, by what, the messages); None stands for the whole file, "" for its end.
Row = tuple[str | None, str, list[str]]
MISTAKES: dict[str, Row] = {
    "an unknown key at the top": ("cache:", "cahce:", ["2: unknown key 'cahce'; did you mean 'cache'?"]),
    "an unknown key of a section": ("slots", "slosts", ["2: unknown key 'slosts'; did you mean 'slots'?"]),
    "an unknown key of a step": ("n: 2", "n: 2, m: 3", ["6: unknown key 'm'; known: n, request, retract_every"]),
    "a misspelt key, which is not missing too": ("prompt", "promt", ["4: unknown key 'promt'; did you mean 'prompt'?"]),
    "an unknown step": ("- finish", "- finsh", ["7: unknown key 'finsh'; did you mean 'finish'?"]),
    "a key without a space": ("prompt: 4", "prompt:4", ["4: unknown key 'prompt:4'; did you mean 'prompt'?"]),
    "a missing key": (", n: 2", "", ["6: decode: 'n' is missing"]),
    "a missing title": ("title: One request\n", "", ["1: title: missing"]),
    "no steps": (None, "title: t\n", ["1: steps: missing"]),
    "an empty list of steps": (None, "title: t\nsteps: []\n", ["2: steps: found a list of 0, need 1 or more"]),
    "steps that are nothing": (None, "title: t\nsteps:\n", ["2: steps: found nothing, need a list"]),
    "a section that is a list": ("{slots: 4}", "[slots, 4]", ["2: cache: found a list, need a mapping"]),
    "two keys in a step": ("- finish: {request: a}", "- finish: {request: a}\n    abort: {request: a}", [f"7: {ONE_KEY}"]),
    "a step that is a word": ("- finish: {request: a}", "- finish", ["7: steps: found 'finish', need a mapping"]),
    "a step that is nothing": ("- finish: {request: a}", "-", ["7: steps: found nothing, need a mapping"]),
    "a step of nobody": ("- finish: {request: a}", "- finish:", ["7: finish: found nothing, need a mapping such as {request: a}"]),
    "an unknown gate": ("cache: {slots: 4}", "model: {gate: gnd}", ["2: model.gate: found 'gnd', need 'gdn' or 'kda'; did you mean 'gdn'?"]),
    "an unknown finish policy": ("slots: 4", "finish: trunkate", ["2: cache.finish: found 'trunkate', need 'truncate' or 'fold'; did you mean 'truncate'?"]),
    "an unknown strategy": ("slots: 4", "strategy: no_bufer", ["2: cache.strategy: no strategy is named 'no_bufer'; did you mean 'no_buffer'?"]),
    "an unknown fault": ("cache: {slots: 4}", "faults: [free-twise]", ["2: faults: no fault is named 'free-twise'; did you mean 'free-twice'?"]),
    "an unknown invariant": ("", "  - expect: {violations: [{invariant: key-match-state}]}\n", ["8: expect.violations.invariant: no invariant is named 'key-match-state'; did you mean 'key-matches-state'?"]),
    "text for a number": ("n: 2", "n: two", ["6: decode.n: found 'two', need a whole number"]),
    "a fraction": ("n: 2", "n: 2.5", ["6: decode.n: found 2.5, need a whole number"]),
    "a switch for a number": ("n: 2", "n: true", ["6: decode.n: found on, need a whole number"]),
    "no number at all": ("n: 2", "n: .nan", ["6: decode.n: found nan, need a whole number"]),
    "nothing for a number": ("n: 2", "n: ~", ["6: decode.n: found nothing, need a whole number"]),
    "a number of far too many digits": ("n: 2", f"n: {'9' * 5000}", [f"6: decode.n: found '{'9' * 56}..., need a whole number"]),
    "a number for a name": ("finish: {request: a}", "finish: {request: 1}", ["7: finish.request: found 1, need text"]),
    "a name with a space": ("finish: {request: a}", "finish: {request: a b}", [f"7: finish.request: found 'a b', need {NAME}"]),
    "a switch that is neither": ("slots: 4", "replayssm: maybe", ["2: cache.replayssm: found 'maybe', need on or off"]),
    "a list that is a word": ("", "  - expect: {rejected: a}\n", ["8: expect.rejected: found 'a', need a list"]),
    "a negative size": ("slots: 4", "slots: -1", ["2: cache.slots: found -1, need at least 2"]),
    "a negative count": ("n: 2", "n: -2", ["6: decode.n: found -2, need at least 1"]),
    "a count beyond all use": ("n: 2", "n: 200000", ["6: decode.n: found 200000, need at most 100,000"]),
    "a prompt that is a word": ("prompt: 4", "prompt: x", ["4: admit.prompt: found 'x', need a whole number or a list"]),
    "a negative prompt": ("prompt: 4", "prompt: -4", ["4: admit.prompt: found -4, need at least 1"]),
    "an empty prompt": ("prompt: 4", "prompt: []", ["4: admit.prompt: found a list of 0, need 1 or more"]),
    "a prompt that is a mapping": ("prompt: 4", "prompt: {tokens: 3}", ["4: admit.prompt: found a mapping, need a whole number or a list"]),
    "a word in a prompt": ("prompt: 4", "prompt: [3, x]", ["4: admit.prompt: found 'x', need a whole number or a mapping"]),
    "a misspelt key in a prompt": ("prompt: 4", "prompt: [3, {text: s, tokns: 5}]", ["4: unknown key 'tokns'; did you mean 'tokens'?"]),
    "a missing key in a prompt": ("prompt: 4", "prompt: [3, {text: s}]", ["4: admit.prompt: 'tokens' is missing"]),
    "a size of none in a prompt": ("prompt: 4", "prompt: [3, {text: s, tokens: 0}]", ["4: admit.prompt.tokens: found 0, need at least 1"]),
    "both kinds of eviction": ("", "  - evict: {states: 1, kv_tokens: 1}\n", ["8: evict: need exactly one of states, kv_tokens, host"]),
    "no kind of eviction": ("", "  - evict: {}\n", ["8: evict: need exactly one of states, kv_tokens, host"]),
    "heads that do not divide": ("cache: {slots: 4}", "model: {heads: 2, value_heads: 3}", ["2: model: value_heads 3 is no multiple of heads 2"]),
    "a bad name as key": ("", "  - expect: {cached: {a b: 3}}\n", [f"8: expect.cached.a b: found 'a b', need {NAME}"]),
    "a number as key": ("n: 2", "3: 2", ["6: decode: 'n' is missing", "6: decode: found 3, need a name as key"]),
    "a node without its state": ("", "  - expect: {tree: [{key: 3}]}\n", ["8: expect.tree: 'state' is missing"]),
    "a key twice": ("n: 2", "n: 2, n: 3", ["6: key 'n' stands in line 6 already; delete one of them"]),
    "a section twice": ("steps:", "cache: {slots: 5}\nsteps:", ["3: key 'cache' stands in line 2 already; delete one of them"]),
    "a tab": ("  - decode", "\t- decode", ["6: found a tab, need spaces; YAML is indented with spaces"]),
    "a bracket left open": ("n: 2}", "n: 2", ["7: not YAML: expected ',' or '}', but got ':', while parsing a flow mapping"]),
    "an escape for no character": ("n: 2", 'n: "\\U0FFFFFFF"', ["6: not YAML: chr() arg not in range(0x110000)"]),
    "an anchor and its alias": ("n: 2}\n  - finish: {request: a}", "n: &n 2}\n  - decode: {request: a, n: *n}", ["6: found the anchor &n, need none; delete it", "7: decode.n: found nothing, need a whole number", "7: found the alias *n, need the value itself; write it out here"]),
    "an alias of itself": ("n: 2", "n: &n [*n]", ["6: decode.n: found a list, need a whole number", "6: found the alias *n, need the value itself; write it out here", "6: found the anchor &n, need none; delete it"]),
    "a tag": ("n: 2", "n: !!int 2", ["6: found the tag !!int, need none; delete it"]),
    "a tag of somebody's own": ("n: 2", "n: !python/object:os.system 2", ["6: found the tag !python/object:os.system, need none; delete it"]),
    "a merge key": ("request: a, n: 2", "<<: {request: a}, n: 2", ["6: decode: 'request' is missing", f"6: {MERGE}"]),
    "a list as key": ("cache: {slots: 4}", "? [a, b]\n: 3", ["2: found a list as a key, need a name"]),
    "a mapping as key": ("cache: {slots: 4}", "? {a: b}\n: 3", ["2: found a mapping as a key, need a name"]),
    "another YAML": ("title", "%YAML 1.1\n---\ntitle", ["2: found YAML 1.1, need 1.2; delete the line"]),
    "two documents": ("", "---\ntitle: again\n", ["8: a second document begins here, need one scenario to a file"]),
    "an empty file": (None, "", [f"1: found nothing, need {NEED}"]),
    "a comment and nothing else": (None, "# later\n", [f"1: found nothing, need {NEED}"]),
    "a list": (None, "- a\n", [f"1: found a list, need {NEED}"]),
    "a word": (None, "hello\n", [f"1: found a single value, need {NEED}"]),
    "a NUL byte": ("n: 2", "n: \0", ["6: found character U+0000, need text; is it a scenario?"]),
    "decode before prefill": ("  - prefill: {request: a}\n", "", ["5: decode of 'a' before its prompt is prefilled; add a 'prefill' step first", "6: finish of 'a' before its prompt is prefilled; add a 'prefill' step first"]),
    "a later turn of an unfinished one": ("finish: {request: a}", "admit: {request: b, continues: a, prompt: 3}", ["7: 'a' is not finished; a turn continues a finished one"]),
    "a step of somebody unknown": ("finish: {request: a}", "finish: {request: b}", ["7: no request 'b' has been admitted; known: a"]),
    "more requests than slots": ("", "".join(f"  - admit: {{request: r{i}, prompt: 4}}\n" for i in range(4)), ["11: 'r3' would be running request number 4, cache.slots 4 serves 3 (slot 0 is reserved); raise slots, end one first, or add 'expect: {rejected: [r3]}'"]),
    "a witness run too long for its columns": ("cache: {slots: 4}", "model: {witness: on, heads: 1, value_heads: 2, key_dim: 4}", ["6: a witness run has heads * key_dim = 4 positions, 'a' comes to 6 tokens; shorten it or raise model.key_dim"]),
    "mistakes of every kind": ("n: 2}\n  - finish: {request: a}", "n: -2}\n  - finish: {request: c, n: 1, n: 2}\n  - abort: {request: d}", ["6: decode.n: found -2, need at least 1", "7: key 'n' stands in line 7 already; delete one of them", "7: unknown key 'n'; known: request", "8: no request 'd' has been admitted; known: a"]),
    "a mistake whose consequences are none": ("admit: {request: a, prompt: 4}", "admit: {request: a, prompt: 0}", ["4: admit.prompt: found 0, need at least 1"]),
}  # fmt: skip


def written(row: Row) -> str:
    old, new, _ = row
    if old is None:
        return new
    assert old in GOOD
    return GOOD + new if old == "" else GOOD.replace(old, new, 1)


def complaints(path: Path, content: str | bytes) -> list[str]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        load_scenario(path)
    except ScenarioError as error:
        problems, text = error.problems, str(error)
    else:
        return []
    assert text.count(str(path)) == len(problems)
    return [f"{problem.line}: {problem.message}" for problem in problems]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_exactly_these_words(mistake: str, tmp_path: Path) -> None:
    assert complaints(tmp_path / "bad.yaml", written(MISTAKES[mistake])) == MISTAKES[mistake][2]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_command_tells_it_too_and_exits_with_two(mistake: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(written(MISTAKES[mistake]), encoding="utf-8")
    result = CliRunner().invoke(main, ["run", str(path), "--backend", "none"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == "".join(f"{path}:{message}\n" for message in MISTAKES[mistake][2])


GOOD_ONES: dict[str, str | bytes] = {
    "as it is": GOOD,
    "with Windows line ends": GOOD.replace("\n", "\r\n"),
    "with a byte order mark": "\ufeff" + GOOD,
    "with a document's beginning and end": f"%YAML 1.2\n---\n{GOOD}...\n",
    "with comments": "# yaml-language-server: $schema=x\n" + GOOD.replace("n: 2}", "n: 2}  # two"),
    "with numbers in other bases": GOOD.replace("n: 2", "n: 0x10").replace("prompt: 4", "prompt: 0o17"),
    "with quotes": GOOD.replace("request: a", 'request: "a"'),
    "with a switch": GOOD.replace("slots: 4", "slots: 4, replayssm: off"),
    "with a prompt of texts": GOOD.replace("prompt: 4", "prompt: [{text: s, tokens: 3}, 2]"),
    "with words of other YAMLs": GOOD.replace("One request", "2001-01-01").replace(
        "request: a", "request: no"
    ),
}


@pytest.mark.parametrize("form", GOOD_ONES)
def test_a_good_file_is_read_in_every_form(form: str, tmp_path: Path) -> None:
    assert complaints(tmp_path / "good.yaml", GOOD_ONES[form]) == []


def test_lines_are_those_of_an_editor_with_windows_line_ends(tmp_path: Path) -> None:
    bad = GOOD.replace("n: 2", "n: -2")
    assert complaints(tmp_path / "a", bad) == complaints(tmp_path / "b", bad.replace("\n", "\r\n"))


def test_a_rejection_that_is_expected_is_no_mistake(tmp_path: Path) -> None:
    content = written(MISTAKES["more requests than slots"]) + "  - expect: {rejected: [r3]}\n"
    assert complaints(tmp_path / "full.yaml", content) == []


PATIENCE = 20  # seconds: a guard against work that grows with the square of a file, no measurement
LAUGHS = "title: &a [x, x]\n" + "".join(
    f"k{i}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n" for i in range(24)
)
HEAVY: dict[str, tuple[str | bytes, str]] = {
    "two megabytes": ("x" * 2_000_000, "1: the file has more than 150,000 bytes; is it a scenario?"),
    "a hundred thousand brackets": ("[" * 100_000, "1: nested deeper than 12 levels, as no scenario is"),
    "a hundred thousand braces": ("a: " + "{a: " * 30_000, "1: nested deeper than 12 levels, as no scenario is"),
    "a staircase": ("\n".join(f"{' ' * i}a:" for i in range(500)), "13: nested deeper than 12 levels, as no scenario is"),
    "a list of lists of lists": ("- " * 50_000, "1: nested deeper than 12 levels, as no scenario is"),
    "a billion laughs": (LAUGHS, "1: found the anchor &a, need none; delete it"),
    "every byte there is": (bytes(range(256)), "2: found byte 0x80, need UTF-8 text; is it a scenario?"),
    "UTF-16": (GOOD.encode("utf-16"), "1: found byte 0xff, need UTF-8 text; is it a scenario?"),
    "four thousand prompts that are words": ("title: t\nsteps:\n" + "  - admit: {request: a, prompt: x}\n" * 4_000, "3: admit.prompt: found 'x', need a whole number or a list"),
    "a fault of a hundred thousand letters": (GOOD + f"faults: [{'a' * 100_000}]\n", "8: faults: no fault is named 'aaa"),
    "a key of a hundred thousand letters": ("a" * 100_000 + ": 3\n", "1: not YAML: "),
}  # fmt: skip


@pytest.mark.parametrize("kind", HEAVY)
def test_what_is_no_scenario_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    content, first = HEAVY[kind]
    begun = time.perf_counter()
    found = complaints(tmp_path / "heavy.yaml", content)
    assert time.perf_counter() - begun < PATIENCE
    assert found[0].startswith(first)


def test_of_very_many_mistakes_the_rest_is_counted(tmp_path: Path) -> None:
    content = "title: t\nsteps:\n" + "  - finish: {request: z}\n" * 500
    found = complaints(tmp_path / "many.yaml", content)
    assert len(found) == MAX_PROBLEMS
    assert found[-1] == "102: 401 more mistakes from here on; is it a scenario?"


def test_limits_are_met_exactly() -> None:
    assert read_document(b"x" * MAX_BYTES).readable
    assert not read_document(b"x" * (MAX_BYTES + 1)).readable
    assert read_document(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH).readable
    assert not read_document(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)).readable


def test_the_table_is_not_empty() -> None:
    assert len(MISTAKES) >= 70
    assert len({tuple(messages) for _, _, messages in MISTAKES.values()}) >= 60
