"""What pieces of an answer add up to, whatever of them is lost, late or there twice."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from afl.turns.chunks import (
    AGAIN,
    CONTENT,
    END,
    GAP,
    MOST_CHARACTERS,
    REASONING,
    START,
    TOOL,
    TOOL_CALL,
    Answer,
    Chunk,
    OpenAnswers,
    joined,
    read_chunk,
)
from afl.turns.relayed_feed import payloads


def said(*pieces: tuple[str, str], request: int = 1, epoch: int = 1) -> list[Chunk]:
    told = [(START, ""), *pieces]
    return [
        Chunk("t", epoch, request, kind, text, index, index + 1)
        for index, (kind, text) in enumerate(told)
    ]


def words(text: str) -> list[tuple[str, str]]:
    return [(CONTENT, word) for word in text]


def heard(*chunks: Chunk) -> Answer:
    answer = Answer()
    for chunk in chunks:
        answer.take(chunk)
    return answer


def text_of(answer: Answer) -> list[tuple[str, str]]:
    return list(joined(answer.pieces))


def test_pieces_add_up() -> None:
    pieces = [(REASONING, "h"), (REASONING, "m"), (CONTENT, "Hi"), (TOOL, "a"), (TOOL, "b")]
    answer = heard(*said(*pieces, (TOOL_CALL, "{"), (TOOL_CALL, "}"), (END, "")))
    assert answer.is_over
    assert text_of(answer) == [
        (REASONING, "hm"),
        (CONTENT, "Hi"),
        (TOOL, "a"),
        (TOOL, "b"),
        (TOOL_CALL, "{}"),
    ]


def test_what_is_lost_is_a_gap_and_what_comes_twice_is_taken_once() -> None:
    chunks = said(*words("abcdef"))
    answer = heard(*chunks[:3], *chunks[1:3], *chunks[5:], *chunks[2:])
    assert text_of(answer) == [(CONTENT, "ab"), (GAP, ""), (CONTENT, "ef")]


def test_a_worker_that_was_taken_for_dead_is_not_heard() -> None:
    old, new = said(*words("old")), said(*words("new"), epoch=2)
    answer = heard(*old[:3], *new[:2], *old[3:], *new[2:])
    assert text_of(answer) == [(CONTENT, "new")]


def test_another_model_and_another_request_begin_anew() -> None:
    answer = heard(*said(*words("ab"), (AGAIN, ""), *words("cd")))
    assert text_of(answer) == [(CONTENT, "cd")]
    before = answer.edition
    for chunk in said(*words("ef"), request=2):
        answer.take(chunk)
    assert (answer.request, text_of(answer)) == (2, [(CONTENT, "ef")])
    assert answer.edition > before


def test_an_answer_has_an_end() -> None:
    chunks = said((CONTENT, "x" * MOST_CHARACTERS), (CONTENT, "y"), (END, ""))
    answer = heard(*chunks)
    assert answer.is_over
    assert text_of(answer) == [(CONTENT, "x" * MOST_CHARACTERS)]


def test_bodies_are_read_as_they_were_written() -> None:
    for chunk in said(*words("ab"), (TOOL, "look"), (TOOL_CALL, "{}"), (END, "")):
        assert read_chunk(chunk.body()) == chunk
    assert read_chunk({"agent": "ann", "status": "idle"}) is None
    assert read_chunk([1]) is None
    half = Chunk("t", 1, 1, CONTENT, "\ud83d", 1, 2)
    assert read_chunk(half.body()) == Chunk("t", 1, 1, CONTENT, "?", 1, 2)


pieces = st.lists(
    st.tuples(
        st.sampled_from([CONTENT, REASONING, TOOL, TOOL_CALL]),
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=3000),
    ),
    max_size=8,
)


@given(pieces, st.data())
def test_who_listens_late_hears_everything_once(
    pieces: list[tuple[str, str]], data: st.DataObject
) -> None:
    chunks = said(*pieces)
    late = data.draw(st.integers(1, len(chunks)), "when somebody begins to listen")
    told = data.draw(st.integers(0, late), "what was on its way then")
    opened = OpenAnswers()
    for chunk in chunks[:late]:
        opened.note(chunk)
    sent = [*chunks[told:late], *opened.so_far("t"), *chunks[late:]]
    # as they go through the database
    bodies = [body for payload in payloads(sent) for body in json.loads(payload)]
    assert all(len(payload.encode()) < 8000 for payload in payloads(sent))
    answer, early = Answer(), heard(*chunks[:late])
    for body in bodies:
        read = read_chunk(body)
        assert read is not None
        answer.take(read)
        early.take(read)
    assert text_of(answer) == list(joined(pieces))
    # for one who has heard it all along, the same is no news
    assert text_of(early) == list(joined(pieces))


def test_who_does_not_speak_has_said_nothing() -> None:
    opened = OpenAnswers()
    for chunk in said(*words("ab"), (END, "")):
        opened.note(chunk)
    assert opened.so_far("t") == []
    assert opened.so_far("another") == []
