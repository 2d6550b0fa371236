from __future__ import annotations

import json
from dataclasses import replace

import pytest

from afl.kernel.model import (
    CallStatus,
    Continue,
    Json,
    Outcome,
    State,
)
from afl.turns.cards import find
from afl.turns.errors import ModelBusy, ModelRefused
from afl.turns.journal import Note, ResultStatus, Thought
from afl.turns.model import (
    Brief,
    Deliverable,
    Ending,
    Limits,
    Reply,
    Thinking,
    ToolAnswered,
    UserSays,
)
from afl.turns.transcript import canonical, request, request_hash
from tests.turns.playing import ONE, RETURNS, Play, brief, says, tool, uses

# The good way


def test_a_text_answer_is_the_deliverable_of_a_turn_that_is_asked_for_text() -> None:
    play = Play(brief(), [says("Done.")]).run()
    assert play.task.outcome is Outcome.SUCCESS
    assert play.task.result == {"text": "Done."}
    assert play.deliverable() == Deliverable(Ending.DONE, False, {"text": "Done."})
    assert len(play.commits) == 1, "one request is one commit"


def test_the_first_commit_has_the_brief_and_no_other_has() -> None:
    play = Play(brief(tool()), [uses(("add", ONE)), says("2")]).run()
    play.answer("0.0", 2).run()
    cards = play.store.read_box(play.id)
    assert [card.kind for card in cards].count("task") == 1
    assert find(cards, Brief) == [play.brief]


def test_a_turn_calls_a_tool_and_waits_without_a_worker(commit_before: bool) -> None:
    play = Play(brief(tool()), [uses(("add", ONE)), says("2")], commit_before=commit_before).run()
    assert play.task.state is State.WAITING
    assert play.task.worker is None
    assert play.open_keys() == ["0.0"]
    play.answer("0.0", {"sum": 2}).run()
    assert play.task.result == {"text": "2"}
    (result,) = play.results()
    assert (result.status, result.content) == (ResultStatus.OK, '{"sum": 2}')


def test_results_stand_in_the_order_of_the_thought_whatever_the_order_of_arrival(
    commit_before: bool,
) -> None:
    asked = uses(("add", ONE), ("add", '{"n": 2}'), ("add", '{"n": 3}'))
    play = Play(brief(tool()), [asked, says("ok")], commit_before=commit_before).run()
    for key in ("0.2", "0.0", "0.1"):
        assert play.task.state is State.WAITING
        play.answer(key, key)
    play.run()
    assert [result.content for result in play.results()] == ["0.0", "0.1", "0.2"]
    answers = [m for m in play.requests[-1].messages if isinstance(m, ToolAnswered)]
    assert [answer.content for answer in answers] == ["0.0", "0.1", "0.2"]


def test_the_deliverable_is_what_was_submitted_in_the_same_commit() -> None:
    good = '{"title": "A", "score": 3}'
    play = Play(brief(returns=RETURNS), [uses(("submit_result", good))]).run()
    assert play.task.result == {"title": "A", "score": 3}
    assert play.deliverable().fields == {"title": "A", "score": 3}
    assert len(play.commits) == 1


def test_a_text_is_taken_as_the_only_field_if_that_is_text() -> None:
    returns: dict[str, Json] = {
        "type": "object",
        "properties": {"answer": {"type": "string"}},
        "required": ["answer"],
    }
    play = Play(brief(returns=returns), [says("42")]).run()
    assert play.task.result == {"answer": "42"}


def test_requests_can_be_made_again_as_they_were(commit_before: bool) -> None:
    script: list[Reply | ModelBusy | ModelRefused] = [
        uses(("add", ONE), ("nope", "{}")),
        ModelBusy("later"),
        says("not yet", finish="length"),
        uses(("submit_result", '{"title": "A", "score": 3}')),
    ]
    play = Play(brief(tool(), returns=RETURNS), script, commit_before=commit_before).run()
    play.answer("0.0", {"b": 1, "a": 1e22}).run()
    play.answer("busy:0", None, CallStatus.TIMEOUT).run()
    assert play.task.outcome is Outcome.SUCCESS
    turn, thoughts = play.turn(), find(play.store.read_box(play.id), Thought)
    assert len(thoughts) == len(play.asked) == 3
    for number, asked in enumerate(play.asked):
        again = request(turn, number)
        assert canonical(again) == asked
        assert request_hash(again) == thoughts[number].request


# Rules that an answer can break


def test_an_answer_that_breaks_the_rules_is_answered_in_the_same_commit() -> None:
    play = Play(brief(tool()), [uses(("ad", ONE))])
    changes = play.move()
    assert isinstance(changes.then, Continue)
    assert not changes.calls
    (result,) = play.results()
    assert result.status is ResultStatus.ERROR
    assert result.key is None
    assert "did you mean `add`?" in result.content


def test_a_good_use_beside_a_bad_one_is_called() -> None:
    play = Play(brief(tool()), [uses(("nope", "{}"), ("add", ONE)), says("ok")]).run()
    assert play.open_keys() == ["0.1"]
    play.answer("0.1", 2).run()
    answers = [m for m in play.requests[-1].messages if isinstance(m, ToolAnswered)]
    assert [answer.is_error for answer in answers] == [True, False]


def test_a_text_where_a_result_is_due_is_handed_back_with_a_reminder() -> None:
    done = uses(("submit_result", '{"title": "A", "score": 3}'))
    play = Play(brief(returns=RETURNS), [says("It is A."), done]).run()
    assert play.task.outcome is Outcome.SUCCESS
    assert not play.requests[0].tool_required
    assert play.requests[1].tool_required
    reminder = play.requests[1].messages[-1]
    assert isinstance(reminder, UserSays)
    assert "submit_result" in reminder.text


def test_a_result_that_does_not_fit_is_handed_back_with_the_name_of_the_field() -> None:
    bad = uses(("submit_result", '{"title": "A", "score": "high"}'))
    good = uses(("submit_result", '{"title": "A", "score": 3}'))
    play = Play(brief(returns=RETURNS), [bad, good]).run()
    assert play.task.outcome is Outcome.SUCCESS
    (result,) = play.results()
    assert "`score`" in result.content


@pytest.mark.parametrize(
    "answer",
    [
        uses(("submit_result", "{}")),
        uses(("add", "{}")),
        uses(("nope", "{}")),
        says("no tool"),
        says(""),
        Reply((Thinking("hm"),), "stop", "m"),
        Reply((), "stop", "m"),
    ],
)
def test_rules_may_be_broken_only_so_often_in_a_row(answer: Reply) -> None:
    limits = Limits(repairs=2)
    play = Play(brief(tool(), returns=RETURNS, limits=limits), [answer] * 3).run()
    assert play.task.outcome is Outcome.FAILED
    assert play.deliverable().ending is Ending.LIMIT
    assert play.deliverable().partial
    assert "3 times in a row" in play.deliverable().message


def test_a_good_step_starts_the_count_of_repairs_anew() -> None:
    bad, good = uses(("nope", "{}")), uses(("add", ONE))
    script: list[Reply | ModelBusy | ModelRefused] = [bad, good, bad, says("done")]
    play = Play(brief(tool(), limits=Limits(repairs=1)), script).run()
    play.answer("1.0", 2).run()
    assert play.task.outcome is Outcome.SUCCESS


def test_an_answer_that_was_cut_off_is_not_a_deliverable() -> None:
    play = Play(brief(), [says("half of", finish="length"), says("whole")]).run()
    assert play.task.result == {"text": "whole"}
    (note,) = find(play.store.read_box(play.id), Note)
    assert "not whole" in note.text
    assert not note.tool_required


def test_an_answer_that_the_provider_withheld_ends_the_turn() -> None:
    play = Play(brief(), [says("", finish="content_filter")]).run()
    assert play.task.outcome is Outcome.FAILED
    assert play.deliverable().ending is Ending.FAILED


def test_a_tool_that_cannot_be_called_is_an_error_that_the_model_sees() -> None:
    play = Play(brief(tool("broken")), [uses(("broken", ONE)), says("a pity")]).run()
    assert play.task.outcome is Outcome.SUCCESS
    (result,) = play.results()
    assert "nobody knows this facet" in result.content


def test_a_call_that_was_cut_off_is_told_so() -> None:
    cut = replace(uses(("add", '{"n": 1')), finish="length")
    play = Play(brief(tool()), [cut])
    play.move()
    (result,) = play.results()
    assert "longer than the model may write" in result.content


# Hostile models


def test_submitting_with_other_tools_is_refused_and_the_others_are_called() -> None:
    mixed = uses(("submit_result", '{"title": "A", "score": 3}'), ("add", ONE))
    play = Play(brief(tool(), returns=RETURNS), [mixed]).run()
    assert play.task.state is State.WAITING
    assert play.open_keys() == ["0.1"]
    (result,) = play.results()
    assert "alone" in result.content


def test_submitting_twice_at_once_delivers_nothing() -> None:
    good = ("submit_result", '{"title": "A", "score": 3}')
    play = Play(brief(returns=RETURNS), [uses(good, good)])
    assert isinstance(play.move().then, Continue)
    assert not find(play.store.read_box(play.id), Deliverable)


def test_huge_arguments_are_refused_and_not_sent_again() -> None:
    huge = json.dumps({"n": "x" * 1_000_000})
    play = Play(brief(tool()), [uses(("add", huge)), says("sorry")]).run()
    assert play.task.outcome is Outcome.SUCCESS
    (result,) = play.results()
    assert "256000 are allowed" in result.content
    assert len(play.asked[1]) < 10_000


def test_thousands_of_bad_tool_uses_in_one_answer_are_refused_quickly() -> None:
    play = Play(brief(tool()), [uses(*[("add", "{}")] * 3000), says("sorry")]).run()
    assert play.task.result == {"text": "sorry"}
    assert len(play.results()) == 3000


def test_a_model_that_calls_tools_forever_is_ended_by_the_limit_of_requests() -> None:
    limits = Limits(model_calls=3)
    play = Play(brief(tool(), limits=limits), [uses(("add", ONE), text="still")] * 9).run()
    while play.task.state is State.WAITING:
        play.answer(play.open_keys()[0], 1).run()
    assert len(play.asked) == 3
    assert play.task.outcome is Outcome.PARTIAL
    assert play.deliverable() == Deliverable(
        Ending.LIMIT,
        True,
        {"text": "still"},
        "the model was asked 3 times, which is all that the turn may",
    )
    assert play.task.result == {"text": "still", "partial": play.deliverable().message}


def test_tools_beyond_the_limit_are_not_called() -> None:
    limits = Limits(tool_calls=3)
    many = uses(*[("add", ONE)] * 5)
    play = Play(brief(tool(), limits=limits), [many, uses(("add", ONE)), says("fine")]).run()
    assert play.open_keys() == ["0.0", "0.1", "0.2"]
    for key in play.open_keys():
        play.answer(key, 1)
    play.run()
    assert play.task.result == {"text": "fine"}
    refusals = [result for result in play.results() if result.key is None]
    assert len(refusals) == 3
    assert all("no more tools" in result.content for result in refusals)


def test_ids_that_a_provider_gives_twice_or_not_at_all_do_no_harm() -> None:
    script: list[Reply | ModelBusy | ModelRefused] = [
        uses(("add", ONE), ("add", ONE), ("add", ONE), ids=("same", "same", "")),
        uses(("add", ONE), ids=("same",)),
        says("ok"),
    ]
    play = Play(brief(tool()), script).run()
    for key in play.open_keys():
        play.answer(key, key)
    play.run()
    play.answer("1.0", "1.0").run()
    answers = [m for m in play.requests[-1].messages if isinstance(m, ToolAnswered)]
    assert [each.content for each in answers] == ["0.0", "0.1", "0.2", "1.0"]
    assert len({each.id for each in answers}) == 4
    assert answers[0].id == "same"


def test_text_that_no_store_can_keep_does_not_stop_a_turn() -> None:
    play = Play(brief(tool()), [uses(("a\0\ud800", '{"\0":1}')), says("a\0b\ud800")]).run()
    assert play.task.outcome is Outcome.SUCCESS
    assert play.task.result == {"text": "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"}
