"""Arguments, mixins, steps as arguments, scripts, workflows as steps, and what is logged."""

from __future__ import annotations

import pytest

from afl.kernel.model import Json, RunId, TaskId
from afl.runtime.errors import BadInputs, UnknownFacet
from afl.runtime.persistence import LogLine
from tests.runtime.conformance.driver import (
    COMPLETED,
    ERROR,
    ORDERS,
    PAUSED,
    Answer,
    Driver,
    Order,
    Played,
    failing,
    given,
)
from tests.runtime.kept import Kept

HEAD = """
  event facet Get(n: Long) => (r: Long)
  event facet Login(user: String) => (token: String)
  event facet Show(a: Long, b: Long?, c: Long = 7, d: Duration = 90s) => (seen: Json)
  facet Keep(n: Long)
"""
ANSWERS: dict[str, Answer] = {
    "Get": lambda params: {"r": params["n"]},
    "Login": lambda params: {"token": f"token of {params['user']}"},
    "Show": lambda params: {"seen": params},
}


def drive(kept: Kept, body: str, order: Order = "made", **answers: Answer) -> Driver:
    text = f"namespace t {{ {HEAD} {body} }}"
    return Driver(kept.store, text, {**ANSWERS, **answers}, order=order)


def play(kept: Kept, body: str, order: Order = "made", **inputs: Json) -> Played:
    return drive(kept, body, order).play(**inputs)


# Parameters, returns and defaults


def test_what_a_call_leaves_out_is_filled_in(kept: Kept) -> None:
    played = play(
        kept,
        "workflow W(x: Long = 3, y: Long?) => (o: Json, p: Long = 8, q: String?, rs: [Long]?)"
        " andThen { s = Show(a = $.x) yield W(o = [s.seen, $.y]) }",
    )
    seen = {"a": 3, "b": None, "c": 7, "d": 90_000}
    assert played.outputs == {"o": [seen, None], "p": 8, "q": None, "rs": None}


def test_an_implicit_stands_behind_the_call_and_its_mixins(kept: Kept) -> None:
    played = play(
        kept,
        """facet Fill(b: Long)
        implicit d = Show(a = 1, b = 2, c = 3)
        workflow W() => (o: Json) andThen {
          x = Show()
          y = Show(a = 10) with Fill(b = 20)
          yield W(o = [x.seen, y.seen])
        }""",
    )
    assert played.outputs == {
        "o": [
            {"a": 1, "b": 2, "c": 3, "d": 90_000},
            {"a": 10, "b": 20, "c": 3, "d": 90_000},
        ]
    }


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({}, "`n`"),
        ({"n": "one"}, "`t.W` cannot start: `n"),
        ({"n": 1, "extra": 2}, "`extra`"),
        ({"n": 1, "p": {"x": 1}}, "`t.W` cannot start: `p"),
        ({"n": 1, "colour": "pink"}, "`t.W` cannot start: `colour"),
        ({"n": 2**70}, "`t.W` cannot start: `n"),
    ],
)
def test_bad_inputs_are_refused_before_there_is_a_run(
    kept: Kept, inputs: dict[str, Json], said: str
) -> None:
    driver = drive(
        kept,
        """schema P { x: Double, y: Double } enum Colour { red }
        workflow W(n: Long, p: P?, colour: Colour = red) => (o: Long)
        andThen { yield W(o = $.n) }""",
    )
    with pytest.raises(BadInputs, match="cannot start") as caught:
        driver.start(**inputs)
    assert said in str(caught.value)
    assert kept.store.find_runs() == []
    assert kept.store.kernel.find_tasks() == []


def test_only_a_workflow_can_be_started(kept: Kept) -> None:
    driver = drive(kept, "workflow W() => (o: Long) andThen { yield W(o = 1) }")
    for name in ("t.Get", "t.Keep", "t.Nobody"):
        with pytest.raises(UnknownFacet):
            driver.start(name, n=1)
    assert kept.store.find_runs() == []


def test_schema_values(kept: Kept) -> None:
    played = play(
        kept,
        """schema P { x: Double, label: String?, layer: Int = 4 }
        event facet Plot(points: [P]) => (n: Long)
        workflow W(p: P) => (o: Json, x: Double, ps: [P]) andThen {
          corner = P(x = 2, label = "c")
          yield W(o = corner, x = corner.x + $.p.x, ps = [corner, #{x: 1}])
        }""",
        p={"x": 1},
    )
    corner = {"x": 2.0, "label": "c", "layer": 4}
    assert played.outputs == {
        "o": corner,
        "x": 3.0,
        "ps": [corner, {"x": 1.0, "label": None, "layer": 4}],
    }


# Mixins


def test_a_mixin_of_a_call(kept: Kept) -> None:
    played = play(
        kept,
        """facet Fill(b: Long, c: Long)
        facet Box(size: Long, unit: String = "m")
        workflow W() => (o: Json, size: Long, unit: String) andThen {
          s = Show(a = 1, c = 5) with Fill(b = 2, c = 3) with Box(size = 9) as box
          yield W(o = s.seen, size = s.box.size, unit = s.box.unit)
        }""",
    )
    seen = {"a": 1, "b": 2, "c": 5, "d": 90_000, "box": {"size": 9, "unit": "m"}}
    assert played.outputs == {"o": seen, "size": 9, "unit": "m"}


def test_a_mixin_of_a_signature_fills_parameters(kept: Kept) -> None:
    played = play(
        kept,
        """facet Fill(a: Long, b: Long)
        facet F(x: Long = 5, a: Long, b: Long = 1) => (o: Json) with Fill(a = $.x + 1, b = $.x)
        andThen { yield F(o = [$.x, $.a, $.b]) }
        workflow W() => (o: Json) andThen {
          p = F()
          q = F(x = 7, b = 0)
          yield W(o = [p.o, q.o])
        }""",
    )
    assert played.outputs == {"o": [[5, 6, 5], [7, 8, 0]]}


MIXED = """
  facet Log() => (at: String)
  facet F(user: String) => (o: String) with Login(user = $.user) as login with Log() as log
  andThen {
    g = Get(n = 1)
    yield F(o = $.login.token ++ " " ++ g.r) with log(at = "now " ++ g.r)
  }
  workflow W(user: String) => (o: Json) andThen {
    f = F(user = $.user)
    yield W(o = [f.o, f.login.token, f.login.user, f.log.at])
  }"""


@pytest.mark.parametrize("order", ORDERS)
def test_a_mixin_of_a_signature_runs_as_a_step(kept: Kept, order: Order) -> None:
    played = play(kept, MIXED, order, user="me")
    assert played.outputs == {"o": ["token of me 1", "token of me", "me", "now 1"]}
    assert [name for name, _ in played.asked] == ["Login", "Get"]
    assert played.states["0/f/with/login"] == "complete"
    assert played.steps["0/f"].returns == {"o": "token of me 1"}


def test_a_mixin_that_fails_takes_its_step_with_it(kept: Kept) -> None:
    driver = drive(kept, MIXED, Login=failing())
    played = driver.play(user="me")
    assert played.error == {"type": "Boom", "message": "boom", "step": "0/f/with/login"}
    assert "0/f/0" not in played.steps


def test_a_mixin_that_is_a_workflow_has_a_run_of_its_own(kept: Kept) -> None:
    played = play(
        kept,
        """workflow Inner(n: Long) => (m: Long) andThen { g = Get(n = $.n) yield Inner(m = g.r) }
        facet F() => (o: Long) with Inner(n = 4) as inner andThen { yield F(o = $.inner.m + 1) }
        workflow W() => (o: Long) andThen { f = F() yield W(o = f.o) }""",
    )
    assert played.outputs == {"o": 5}
    assert len(played.tasks) == 1


# Steps as arguments


def test_a_step_is_handed_over_whole(kept: Kept) -> None:
    played = drive(
        kept,
        """event facet Fetch(url: String) => (body: String, status: Long)
        facet Describe(page: Fetch) => (text: String) andThen {
          yield Describe(text = $.page.url ++ " " ++ $.page.status)
        }
        facet Twice(page: Fetch) => (text: String) andThen {
          a = Describe(page = $.page)
          yield Twice(text = a.text ++ "!")
        }
        workflow W() => (text: String) andThen {
          t = Twice(page = p)
          p = Fetch(url = "u")
          yield W(text = t.text)
        }""",
        Fetch=lambda params: {"body": "b", "status": 200},
    ).play()
    assert played.outputs == {"text": "u 200!"}


# Scripts


def test_scripts_before_a_body_and_as_clauses(kept: Kept) -> None:
    played = play(
        kept,
        """event facet Slug(title: String) => (slug: String) script {
          result["slug"] = params["title"].lower()
        }
        facet F(n: Long) => (m: Long) script { result["twice"] = params["n"] * 2 } andThen {
          yield F(m = $.twice)
        }
        workflow W(text: String) => (slugs: [String], count: Long, m: Long) script {
          result["lines"] = params["text"].split()
        } andThen foreach line in $.lines {
          made = Slug(title = $.line)
          yield W(slugs = [made.slug])
        } andThen script { result["count"] = len(params["lines"]) }
        andThen { f = F(n = 4) yield W(m = f.m) }""",
        "chance",
        text="One Two",
    )
    assert played.outputs == {"slugs": ["one", "two"], "count": 2, "m": 8}
    assert {task.kind for task in played.tasks} == {"script"}
    assert {task.name for task in played.tasks} == {"afl:script"}


def test_a_script_that_fails(kept: Kept) -> None:
    text = """workflow W() => (o: Long) %s script { result["i"] = 1 / 0 } andThen {
      yield W(o = 1)
    }"""
    assert play(kept, text % "").error["type"] == "ZeroDivisionError"
    assert play(kept, text % "catch { yield W(o = 2) }").outputs == {"o": 2}


def test_a_script_as_a_clause_of_a_step(kept: Kept) -> None:
    played = play(
        kept,
        """facet F(n: Long) => (m: Long)
        workflow W(k: Long) => (o: Long) andThen {
          f = F(n = 1) andThen script { result["m"] = params["k"] + 1 }
          yield W(o = f.m)
        }""",
        k=4,
    )
    assert played.outputs == {"o": 5}


# Workflows as steps


CHILD = """
  workflow Inner(i: Long, user: String = "me") => (o: Long, t: String)
    with Login(user = $.user) as login
  script { result["i"] = params["i"] * 2 } andThen {
    g = Get(n = $.i)
    yield Inner(o = g.r, t = $.login.token)
  }
  workflow W() => (o: Json) andThen {
    a = Inner(i = 5)
    yield W(o = [a.o, a.t])
  }"""


@pytest.mark.parametrize("order", ORDERS)
def test_a_workflow_as_a_step_does_its_work_once(kept: Kept, order: Order) -> None:
    played = play(kept, CHILD, order)
    assert played.outputs == {"o": [10, "token of me"]}
    assert sorted(name for name, _ in played.asked) == ["Get", "Login", "afl:script"]


def test_a_mixin_of_a_workflow_is_read_from_outside(kept: Kept) -> None:
    played = play(
        kept,
        """workflow Inner() => (o: Long) with Login(user = "me") as login andThen {
          g = Get(n = 1)
          yield Inner(o = g.r)
        }
        workflow W() => (o: Json) andThen {
          a = Inner()
          yield W(o = [a.o, a.login.token])
        }""",
    )
    assert played.outputs == {"o": [1, "token of me"]}
    assert [name for name, _ in played.asked] == ["Login", "Get"]
    (child,) = kept.store.find_runs(parent=played.run.id)
    assert child.outputs == {"o": 1}


def test_a_workflow_that_fails_fails_its_step(kept: Kept) -> None:
    text = """workflow Inner() => (o: Long) andThen { g = Get(n = 1) yield Inner(o = g.r) }
    workflow W() => (o: Long) andThen { a = Inner() %s yield W(o = a.o) }"""
    played = drive(kept, text % "", Get=failing("Busy", "no")).play()
    assert played.status is ERROR
    assert (played.error["type"], played.error["message"]) == ("Busy", "no")
    assert played.error["step"] == "0/a"
    caught = drive(kept, text % "catch { yield Inner(o = 3) }", Get=failing()).play()
    assert caught.outputs == {"o": 3}


def test_the_catch_of_a_workflow_runs_once_in_its_own_run(kept: Kept) -> None:
    driver = drive(
        kept,
        """workflow Inner() => (o: Long) catch { l = Login(user = "x") yield Inner(o = 0) }
        andThen { g = Get(n = 1) yield Inner(o = g.r) }
        workflow W() => (o: Long) andThen { a = Inner() yield W(o = a.o) }""",
        Get=failing(),
    )
    played = driver.play()
    assert played.outputs == {"o": 0}
    assert [name for name, _ in played.asked] == ["Get", "Login"]


def test_the_catch_of_a_workflow_guards_what_comes_before_its_body(kept: Kept) -> None:
    driver = drive(
        kept,
        """workflow Inner() => (o: Long) with Login(user = "x") as login
        catch { yield Inner(o = 0) } andThen { yield Inner(o = 1) }
        workflow W() => (o: Long) andThen { a = Inner() yield W(o = a.o) }""",
        Login=failing(),
    )
    assert driver.play("t.Inner").outputs == {"o": 0}
    assert driver.play().outputs == {"o": 0}


def test_the_body_of_a_step_takes_the_place_of_the_workflow(kept: Kept) -> None:
    played = play(
        kept,
        """workflow Inner(n: Long) => (o: Long) andThen { g = Get(n = $.n) yield Inner(o = g.r) }
        workflow W() => (o: Long) andThen {
          a = Inner(n = 3) andThen { yield Inner(o = a.n * 100) }
          yield W(o = a.o)
        }""",
    )
    assert played.outputs == {"o": 300}
    assert played.tasks == []
    assert kept.store.find_runs(parent=played.run.id) == []


def test_workflows_in_a_foreach(kept: Kept) -> None:
    played = play(
        kept,
        """workflow Inner(n: Long) => (o: Long) andThen { g = Get(n = $.n) yield Inner(o = g.r) }
        workflow W() => (os: [Long]) andThen foreach x in [3, 1, 2] {
          a = Inner(n = $.x)
          yield W(os = [a.o])
        }""",
        "reverse",
    )
    assert played.outputs == {"os": [3, 1, 2]}
    assert len(kept.store.find_runs(parent=played.run.id)) == 3


# Steps with bodies


def test_a_step_reads_itself_in_its_body(kept: Kept) -> None:
    played = play(
        kept,
        """facet Sum(of: [Long]) => (total: Long)
        workflow W() => (o: Json) andThen {
          s = Sum(of = [4, 5]) andThen {
            g = Get(n = s.of[1])
            yield Sum(total = g.r)
          }
          e = Get(n = s.total) andThen { yield Get(r = e.r * 10 + e.n) }
          yield W(o = [s.total, e.r])
        }""",
    )
    assert played.outputs == {"o": [5, 55]}


# sys statements


def test_logs_are_kept_in_the_order_in_which_they_were_written(kept: Kept) -> None:
    played = play(
        kept,
        """workflow W() => (o: Long) andThen {
          a = Get(n = 1)
          b = Get(n = a.r + 1)
          sys.log(second = b.r, text = "x")
          sys.log(first = a.r)
          yield W(o = b.r)
        }""",
    )
    assert kept.store.get_logs(played.run.id) == [
        LogLine("0/log-1", {"first": 1}),
        LogLine("0/log-0", {"second": 2, "text": "x"}),
    ]


def test_nothing_waits_for_an_assertion(kept: Kept) -> None:
    driver = drive(
        kept,
        """workflow W() => (o: Long) andThen {
          a = Get(n = 1)
          sys.assert(a.r > 1)
          b = Get(n = a.r)
          yield W(o = b.r)
        }""",
    )
    run = driver.pause().run.id
    driver.answer_all()
    driver.advance()
    assert driver.played(run).status is PAUSED
    assert driver.played(run).states["0/b"] == "EventTransmit"
    assert driver.finish(run).error["type"] == "AssertionFailed"


def test_a_task_says_what_it_is_for(kept: Kept) -> None:
    driver = drive(kept, "workflow W() => (o: Long) andThen { a = Get(n = 1) yield W(o = a.r) }")
    played = driver.pause()
    (task,) = played.tasks
    assert given(task) == {
        "facet": "t.Get",
        "params": {"n": 1},
        "run": played.run.id,
        "step": "0/a",
        "program": driver.hash,
    }
    assert (task.kind, task.name, task.list) == ("event", "t.Get", "default")
    assert task.run == RunId(played.run.id)
    call = kept.store.kernel.find_call(TaskId(played.run.id), "0/a")
    assert call is not None
    assert call.callee == task.id
    assert driver.finish(played.run.id).status is COMPLETED
