"""The inbox: what waits for people, on both stores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from afl.kernel.model import CallSpec, CallStatus, Commit, Json, Suspend, TaskId, TaskSpec
from afl.kernel.postgres.database import Database
from afl.kernel.postgres.store import PostgresStore
from afl.runtime.calls import PEOPLE
from afl.runtime.entities import Run
from afl.runtime.errors import AlreadyAnswered, BadInputs, UnknownItem
from afl.runtime.inbox import Inbox, InboxItem
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.reasons import WhyCode
from tests.kernel.postgres.databases import server_is_there
from tests.kernel.postgres.test_plans import Plans
from tests.runtime.driving import World
from tests.runtime.kept import HOUR, Kept, claim, flow

FLOW = """\
namespace demo {
  enum Answer { yes, no }

  schema Line { text: String, count: Int = 1 }

  /**
   * Asks whether something may be bought.
   *
   * @return answer what was decided
   */
  event facet Approve(
    what: String,
    amount: Double,
  ) => (answer: Answer, lines: [Line] = [], note: String?)
    with Human(group = "finance", deadline = 2d)

  event facet Name(hint: String) => (name: String) with Human(group = "parents")

  workflow Buy(what: String) => (answer: Answer, note: String?) andThen {
    asked = Approve(what = $.what, amount = 3)
    yield Buy(answer = asked.answer, note = asked.note)
  }
  workflow Call() => (name: String) andThen {
    named = Name(hint = "short")
    yield Call(name = named.name)
  }
  workflow Careful() => (name: String) andThen {
    named = Name(hint = "short") catch {
      yield Name(name = error.type ++ ": " ++ error.message)
    }
    yield Careful(name = named.name)
  }
}
"""


@pytest.fixture
def world(kept: Kept) -> World:
    world = World(kept)
    world.deploy(FLOW)
    return world


def only(world: World, group: str | None = None) -> InboxItem:
    (item,) = world.operations.inbox.list(group)
    return item


class TestList:
    def test_an_item_says_what_is_asked_and_what_the_answer_looks_like(self, world: World) -> None:
        run = world.run("demo.Buy", {"what": "desk"})
        item = only(world)
        assert (item.facet, item.group, item.run, item.step) == (
            "demo.Approve",
            "finance",
            run.id,
            "0/asked",
        )
        assert item.title == "Asks whether something may be bought."
        assert item.params == {"what": "desk", "amount": 3.0}
        assert item.deadline is not None
        assert item.deadline - item.since == timedelta(days=2)
        assert item.at_deadline is not None
        assert "`Timeout`" in item.at_deadline
        assert item.form["required"] == ["answer"]
        assert item.form["properties"] == {
            "answer": {
                "type": "string",
                "enum": ["yes", "no"],
                "description": "what was decided",
            },
            "lines": {"type": "array", "items": {"$ref": "#/$defs/demo.Line"}, "default": []},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        }

    def test_an_item_without_a_deadline_waits_for_ever(self, world: World) -> None:
        world.run("demo.Call")
        item = only(world)
        assert (item.title, item.deadline, item.at_deadline) == ("Name", None, None)

    def test_items_are_listed_by_group_and_page(self, world: World) -> None:
        for _ in range(3):
            world.run("demo.Buy", {"what": "x"})
        world.run("demo.Call")
        inbox = world.operations.inbox
        assert [item.group for item in inbox.list()] == ["finance"] * 3 + ["parents"]
        first = inbox.list("finance", limit=2)
        rest = inbox.list("finance", after=first[-1].task, limit=2)
        assert len({item.task for item in first + rest}) == 3
        assert [item.facet for item in inbox.list("parents")] == ["demo.Name"]
        assert inbox.list("nobody") == []

    def test_no_worker_gets_what_people_are_asked_for(self, world: World) -> None:
        world.run("demo.Call")
        task = world.kept.store.kernel.get_task(TaskId(only(world).task))
        assert task is not None
        assert task.list == PEOPLE

    def test_what_was_answered_or_stopped_is_not_listed(self, world: World) -> None:
        first, second = world.run("demo.Call"), world.run("demo.Call")
        items = {item.run: item for item in world.operations.inbox.list()}
        world.operations.inbox.answer(items[first.id].task, {"name": "Ada"})
        world.operations.cancel(second.id)
        world.drive(second)
        assert world.operations.inbox.list() == []

    def test_an_item_whose_answer_is_there_is_not_listed_even_if_its_task_is_open(
        self, world: World
    ) -> None:
        world.run("demo.Call")
        item = only(world)
        kernel = world.kept.store.kernel
        task = kernel.get_task(TaskId(item.task))
        assert task is not None
        assert task.parent_call is not None
        # whoever answered died before the task was closed
        kernel.reply(task.parent_call, CallStatus.OK, {"name": "Ada"})
        assert world.operations.inbox.list() == []
        with pytest.raises(AlreadyAnswered, match="It was already answered"):
            world.operations.inbox.answer(item.task, {"name": "Bob"})


class TestAnswer:
    def test_the_run_goes_on_with_the_answer(self, world: World) -> None:
        run = world.run("demo.Buy", {"what": "desk"})
        world.operations.inbox.answer(only(world).task, {"answer": "yes"}, by="ada")
        ended = world.drive(run)
        assert (ended.state, ended.outputs) == ("completed", {"answer": "yes", "note": None})

    @pytest.mark.parametrize(
        ("values", "said"),
        [
            ({"answer": "maybe"}, "`answer`: a member of `Answer` (`yes` or `no`) belongs here"),
            ({"answer": "yes", "note": 3}, "`note`: a String belongs here"),
            ({"answer": "yes", "lines": [{"text": "a", "count": "b"}]}, "`lines[0].count`: "),
            ({}, "`answer`"),
            ({"answer": "yes", "nte": ""}, "`nte`"),
        ],
    )
    def test_an_answer_that_does_not_fit_is_refused_and_names_the_field(
        self, world: World, values: dict[str, object], said: str
    ) -> None:
        world.run("demo.Buy", {"what": "desk"})
        item = only(world)
        with pytest.raises(BadInputs) as raised:
            world.operations.inbox.answer(item.task, values)  # type: ignore[arg-type]
        assert said in raised.value.message
        assert f"`afl inbox show {item.task}`" in raised.value.message
        assert only(world) == item

    def test_the_second_is_told_who_was_first(self, world: World) -> None:
        run = world.run("demo.Call")
        item = only(world)
        world.operations.inbox.answer(item.task, {"name": "Ada"}, by="grace")
        for late in (
            lambda: world.operations.inbox.answer(item.task, {"name": "Bob"}, by="bob"),
            lambda: world.operations.inbox.answer(item.task, {"name": "Ada"}, by="bob"),
            lambda: world.operations.inbox.reject(item.task, "no", by="bob"),
            lambda: world.operations.inbox.get(item.task),
        ):
            with pytest.raises(AlreadyAnswered, match="already answered by grace"):
                late()
        assert world.drive(run).outputs == {"name": "Ada"}

    def test_of_many_at_once_one_wins(self, kept: Kept) -> None:
        world = World(kept)
        world.deploy(FLOW)
        run = world.run("demo.Call")
        item = only(world)

        def answer(who: str) -> str | None:
            try:
                world.operations.inbox.answer(item.task, {"name": who}, by=who)
            except AlreadyAnswered:
                return None
            return who

        with ThreadPoolExecutor(4) as pool:
            won = [who for who in pool.map(answer, "abcdefgh") if who is not None]
        assert len(won) == 1
        assert world.drive(run).outputs == {"name": won[0]}

    def test_a_rejection_fails_the_step_with_its_reason(self, world: World) -> None:
        run = world.run("demo.Call")
        world.operations.inbox.reject(only(world).task, "not my child", by="ada")
        ended = world.drive(run)
        assert ended.error is not None
        assert (ended.error["type"], ended.error["message"]) == ("Rejected", "not my child")

    def test_a_rejection_can_be_caught(self, world: World) -> None:
        run = world.run("demo.Careful")
        world.operations.inbox.reject(only(world).task, by="ada")
        assert world.drive(run).outputs == {"name": "Rejected: ada has rejected it."}

    def test_after_the_deadline_the_step_has_failed_and_no_answer_is_taken(
        self, world: World
    ) -> None:
        run = world.run("demo.Buy", {"what": "desk"})
        item = only(world)
        world.kept.advance(timedelta(days=2, seconds=1))
        ended = world.drive(run)
        assert ended.error is not None
        assert ended.error["type"] == "Timeout"
        with pytest.raises(AlreadyAnswered, match="Its time was over at 2030-01-03"):
            world.operations.inbox.answer(item.task, {"answer": "yes"})

    def test_what_is_no_request_is_unknown(self, world: World) -> None:
        run = world.run("demo.Call")
        for id_ in (run.id, "nonsense"):
            with pytest.raises(UnknownItem, match="`afl inbox list` shows what waits"):
                world.operations.inbox.get(id_)

    def test_why_names_the_command(self, world: World) -> None:
        run = world.run("demo.Buy", {"what": "desk"})
        (answer,) = world.operations.why(run.id, "0/asked").answers
        assert answer.code is WhyCode.PERSON
        assert answer.command == f"afl inbox answer {only(world).task}"
        assert answer.sentence.startswith(
            "`0/asked` waits for a person of the group `finance`, until"
        )


FORM: dict[str, Json] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": ["string", "null"]},
        "how": {"type": "string", "enum": ["once", "always"], "default": "once"},
    },
    "required": ["approved"],
}


class TestForms:
    """What turns ask for has its form in the task."""

    @pytest.fixture
    def item(self, world: World) -> InboxItem:
        flow(world.kept)
        held = claim(world.kept)
        given: Json = {
            "facet": "afl.Approve",
            "group": "ops",
            "title": "May `Delete` be called?",
            "params": {"tool": "Delete", "arguments": {"path": "/"}},
            "form": FORM,
        }
        task = TaskSpec("human", "afl.Approve", list=PEOPLE, input=given)
        call = CallSpec("approve:1.0", task, HOUR)
        world.kept.store.kernel.commit([Commit(held.fence, Suspend(), calls=(call,))])
        return only(world, "ops")

    def test_an_approval_shows_its_own_form(self, item: InboxItem) -> None:
        assert (item.title, item.form, item.step) == ("May `Delete` be called?", FORM, None)
        assert item.params == {"tool": "Delete", "arguments": {"path": "/"}}
        assert item.at_deadline == "What was asked for is not done, and the model is told."

    @pytest.mark.parametrize(
        ("values", "said"),
        [
            ({}, "`approved`: it is missing"),
            ({"approved": 1}, "`approved`: true or false belongs here, not "),
            ({"approved": True, "reason": 1}, "`reason`: a text or null belongs here"),
            ({"approved": True, "reson": ""}, "did you mean `reason`?"),
            ({"approved": True, "how": "never"}, "`how`: `once` or `always` belongs here"),
        ],
    )
    def test_it_is_validated(
        self, world: World, item: InboxItem, values: dict[str, object], said: str
    ) -> None:
        with pytest.raises(BadInputs) as raised:
            world.operations.inbox.answer(item.task, values)  # type: ignore[arg-type]
        assert said in raised.value.message

    def test_the_answer_goes_to_the_caller_with_defaults(
        self, world: World, item: InboxItem
    ) -> None:
        world.operations.inbox.answer(item.task, {"approved": True})
        call = world.kept.store.kernel.find_call(TaskId(item.run), "approve:1.0")
        assert call is not None
        assert call.reply == {"approved": True, "how": "once"}

    def test_a_rejection_is_an_answer_that_does_not_approve(
        self, world: World, item: InboxItem
    ) -> None:
        world.operations.inbox.reject(item.task, "too risky", by="ada")
        call = world.kept.store.kernel.find_call(TaskId(item.run), "approve:1.0")
        assert call is not None
        assert (call.status, call.reply) == (
            CallStatus.OK,
            {"approved": False, "reason": "too risky"},
        )


@pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")
def test_the_inbox_is_read_by_index(runs_url: str) -> None:
    plans = Plans()
    store = PostgresPersistence(PostgresStore(Database(runs_url, max_size=1, prepare=plans.watch)))
    try:
        store.kernel.enqueue([TaskSpec("event", "other") for _ in range(500)])
        plans.seen.clear()
        assert store.human_tasks("finance") == []
        assert store.human_tasks() == []
        assert plans.seen
        assert not [line for line in plans.whole_scans() if "task_people" not in line]
    finally:
        store.close()


def test_a_ring_reaches_whoever_advances_the_run(world: World) -> None:
    rung: list[str] = []
    inbox = Inbox(world.kept.store, world.driver.evaluator.plans, rung.extend)
    run: Run = world.run("demo.Call")
    inbox.answer(only(world).task, {"name": "Ada"})
    assert rung == ["default"]
    assert world.drive(run).outputs == {"name": "Ada"}
