"""Who continues whom, and which tokens a request therefore has."""

from __future__ import annotations

from replaylife.lifecycle.workload.conversation import FRESH, Conversations
from replaylife.lifecycle.workload.log import read_entries

from .support import Plain, line, talks, turns

FIRST = line(0, (1, 2, 3), 100, output=20)
NEXT = line(9, (1, 2, 4, 5), 50)


def test_a_reply_is_what_the_request_that_extends_it_says() -> None:
    one, two = turns(FIRST, NEXT)
    assert one.continued
    assert one.text == two.text[: 1024 + 100 + 20]
    assert two.continues == 1


def test_without_a_later_request_the_reply_is_new_and_unlike_any_other() -> None:
    one, two = turns(FIRST, line(9, (7, 8, 9), 100, output=20))
    assert not one.continued
    replies = [set(turn.text[1124:]) for turn in (one, two)]
    assert replies[0].isdisjoint(replies[1])
    assert min(min(reply) for reply in replies) >= FRESH


def test_the_same_first_block_alone_does_not_make_a_conversation() -> None:
    one, two = turns(line(0, (1, 2), 100), line(9, (1, 3, 4), 100))
    assert (one.continued, two.continues) == (False, None)


def test_a_longer_prompt_without_room_for_the_reply_does_not_extend() -> None:
    one, two = turns(line(0, (1, 2, 3), 100, output=20), line(9, (1, 2, 4), 119))
    assert (one.continued, two.continues) == (False, None)
    one, two = turns(line(0, (1, 2, 3), 100, output=20), line(9, (1, 2, 4), 120))
    assert (one.continued, two.continues) == (True, 1)


def test_a_third_turn_tells_the_end_of_the_second_which_tells_the_reply_of_the_first() -> None:
    one, two, three = turns(FIRST, line(5, (1, 2, 4), 200, output=10), line(9, (1, 2, 6, 7), 50))
    assert two.text == three.text[: 1024 + 200 + 10]
    assert one.text == three.text[: 1024 + 100 + 20]
    assert (two.continues, three.continues) == (1, 2)


def test_a_window_that_is_too_short_misses_the_request_that_extends() -> None:
    lines = [FIRST, line(1, (50, 51), 9), line(2, (60, 61), 9), NEXT]
    seen = [turn.continued for turn in Conversations(read_entries(lines), lookahead=3)]
    missed = [turn.continued for turn in Conversations(read_entries(lines), lookahead=2)]
    assert (seen[0], missed[0]) == (True, False)


def test_the_tokens_are_those_of_the_plain_reading_of_the_log() -> None:
    lines = talks()
    plain, told = Plain(lines), 0
    for number, turn in enumerate(turns(*lines)):
        row = plain.rows[number]
        assert list(turn.text[: row["input_length"]]) == list(plain.prompts[number])
        assert turn.continued is (plain.later(number) is not None)
        told += turn.continued
    assert told >= 14
