"""Reading a request log: every line, or the line that is wrong and why."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from replaylife.lifecycle.workload.log import MAX_PROBLEMS, LogError, read_entries

from .support import entries, excerpt, line


def test_every_field_is_read_and_blank_lines_are_passed_over() -> None:
    (one, two) = entries(line(3, (1, 2, 9), 10, 7), "", line(5))
    assert (one.line, one.timestamp, one.input_length, one.output_length) == (1, 3, 1034, 7)
    assert one.hash_ids == (1, 2, 9)
    assert (two.line, two.whole_blocks) == (3, 1)


def test_the_shipped_excerpt_reads_clean() -> None:
    assert len(entries(*excerpt(300))) == 300


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("{", "no JSON"),
        ('{"timestamp": 5, "inp', "no JSON (Unterminated string at column 18)"),
        ("[" * 100_000, "no JSON (maximum recursion depth"),
        ("[1]", "found list, expected an object"),
        (line(timestamp=-1), "timestamp: found -1, expected a whole number of at least 0"),
        (line(output=0), "output_length: found 0, expected a whole number of at least 1"),
        (line(input_length="7"), "input_length: found '7', expected a whole number"),
        (line(input_length=True), "input_length: found True"),
        (line(hash_ids=[1]), "hash_ids: found 1, expected 2, one per block of 512 for 612 tokens"),
        (line(hash_ids=[1, "x"]), "hash_ids: found [1, 'x'], expected a list of whole numbers"),
        (line(hash_ids=None), "hash_ids: found None"),
        (line(timestamp=4), "timestamp: found 4, expected at least 5: a log is in order of arrival"),
    ],
)
def test_a_bad_line_is_named_with_what_was_found_and_expected(bad: str, said: str) -> None:
    with pytest.raises(LogError) as raised:
        entries(line(5), bad, line(6))
    ((number, message),) = raised.value.problems
    assert number == 2
    assert said in message


@pytest.mark.parametrize("lines", [(), ("", "  \n")])
def test_a_log_without_a_request_is_told(lines: tuple[str, ...]) -> None:
    with pytest.raises(LogError, match="found no request up to here, expected one JSON object a line"):
        entries(*lines)


def test_all_bad_lines_are_told_up_to_a_limit() -> None:
    with pytest.raises(LogError) as raised:
        entries(line(), "x", line(), "y")
    assert [number for number, _ in raised.value.problems] == [2, 4]
    with pytest.raises(LogError) as raised:
        entries(*["x"] * 100)
    assert len(raised.value.problems) == MAX_PROBLEMS


def test_the_error_survives_a_process_boundary() -> None:
    assert pickle.loads(pickle.dumps(LogError([(2, "no")]))).problems == [(2, "no")]


def test_the_log_is_read_as_it_is_taken_and_never_held() -> None:
    read = 0

    def lines() -> Iterator[str]:
        nonlocal read
        for number in range(1_000):
            read += 1
            yield line(number)

    taken = read_entries(lines())
    next(taken)
    next(taken)
    assert read == 2
