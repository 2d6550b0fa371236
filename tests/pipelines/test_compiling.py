"""A pipeline is the program that AFL would make of the same flow."""

from __future__ import annotations

import pytest

from afl.app.compiling import compile_program
from afl.app.front_ends import compile_together
from afl.ir.codec import dumps, loads
from afl.ir.digest import program_hash
from afl.ir.model import ListExpr, Literal, Step
from tests.pipelines.compiled import pipeline, program_of, steps_of, together

DAILY = """\
name: Daily load
description: Loads what came in yesterday
tasks:
  fetch:
    name: Fetch
    description: From the shop
    config: !Subprocess
      cmd: curl
      args:
        - -fsSO
        - "https://example.org/orders.csv"
  clean:
    name: Clean
    depends: [fetch]
    config: !UvPython
      script_path: clean.py
      packages: [pandas, "rich>=13"]
  count:
    name: Count
    depends: [fetch]
    config: !Subprocess
      cmd: wc
  report:
    name: Report
    depends:
      - clean
      - count
    config: !UvPython
      script_path: report.py
      is_uv_project: true
      working_directory: reports
"""

SAME_IN_AFL = """\
namespace etl {
  workflow daily() with Placement(kind = pinned) andThen {
    fetch = afl.exec.Command(argv = ["curl", "-fsSO", "https://example.org/orders.csv"])
    clean = afl.exec.Uv(script = "clean.py", packages = ["pandas", "rich>=13"]) after fetch
    count = afl.exec.Command(argv = ["wc"]) after fetch
    report = afl.exec.Uv(script = "report.py", project = "reports", cwd = "reports")
      after clean, count
  }
}
"""


def _args(step: Step) -> dict[str, object]:
    def plain(value: object) -> object:
        if isinstance(value, ListExpr):
            return [plain(item) for item in value.items]
        assert isinstance(value, Literal)
        return value.value

    return {argument.name: plain(argument.value) for argument in step.args}


def test_it_is_the_same_program_as_in_afl() -> None:
    program = program_of(DAILY, "etl.daily")
    assert program == compile_program(SAME_IN_AFL)
    assert program_hash(program) == program_hash(compile_program(SAME_IN_AFL))


def test_it_can_be_stored_and_says_for_people_where_its_tasks_are() -> None:
    program = program_of(DAILY, "etl.daily")
    assert loads(dumps(program)) == program
    span = program.spans["etl.daily/0/clean"]
    assert (span.file, span.line, span.column) == ("nightly.yaml", 12, 3)
    assert program.spans["etl.daily"].line == 1
    assert program.docs["etl.daily"] == "Daily load\n\nLoads what came in yesterday"
    assert program.docs["etl.daily/0/fetch"] == "Fetch\n\nFrom the shop"


def test_another_uv_is_a_command_like_any_other() -> None:
    text = """\
name: Other uv
tasks:
  one:
    name: One
    config: !UvPython
      script_path: one.py
      packages: [a, b]
      uv_path: /opt/uv
      working_directory: work
  two:
    name: Two
    config: !UvPython
      script_path: two.py
      packages: [a]
      is_uv_project: true
      uv_path: /opt/uv
  plain:
    name: Plain
    config: !UvPython
      script_path: three.py
      uv_path: uv
"""
    steps = steps_of(program_of(text))
    assert steps["one"].facet == steps["two"].facet == "afl.exec.Command"
    assert _args(steps["one"]) == {
        "argv": ["/opt/uv", "run", "--with", "a", "--with", "b", "one.py"],
        "cwd": "work",
    }
    assert _args(steps["two"]) == {"argv": ["/opt/uv", "run", "two.py"]}
    assert (steps["plain"].facet, _args(steps["plain"])) == ("afl.exec.Uv", {"script": "three.py"})


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("30 2 * * 1-5", "30 2 * * 1-5"),
        ("0 30 2 * * MON-FRI", "30 2 * * MON-FRI"),
        ("0 0 3 ? * SUN", "0 3 * * SUN"),
        ("0 */15 * * * * *", "*/15 * * * *"),
    ],
)
def test_a_cron_is_a_schedule_of_the_program(cron: str, expected: str) -> None:
    text = f'{pipeline({"a": []})}cron: "{cron}"\nstart_time: 2027-01-31T09:00:00Z\n'
    (schedule,) = program_of(text).schedules
    assert (schedule.name, schedule.workflow) == ("nightly.cron", "nightly")
    assert (schedule.cron, schedule.zone) == (expected, "UTC")
    assert schedule.start == "2027-01-31T09:00:00+00:00"
    assert schedule.catch_up == "none"


def test_without_a_cron_nothing_is_scheduled() -> None:
    text = f"{pipeline({'a': []})}start_time: 2027-01-31T09:00:00+02:00\n"
    assert program_of(text).schedules == ()


def test_afl_and_pipelines_are_one_program() -> None:
    compilation = compile_together(together(flow=SAME_IN_AFL, nightly=pipeline({"a": []})))
    assert compilation.diagnostics == ()
    assert compilation.program is not None
    names = [facet.name for facet in compilation.program.facets]
    assert names == ["afl.exec.Command", "afl.exec.Uv", "etl.daily", "nightly"]
    assert [file.source.name for file in compilation.files] == ["flow.afl", "nightly.yaml"]


def test_two_files_of_one_name_clash() -> None:
    one, two = pipeline({"a": []}), pipeline({"b": []})
    files = [*together(nightly=one), *together(nightly=two)]
    (found,) = compile_together(files).diagnostics
    assert found.code == "AFL1004"
    assert found.primary.span.text == "Tasks"
    clash = [*together(flow=SAME_IN_AFL), *together(**{"etl.daily": two})]
    (found,) = compile_together(clash).diagnostics
    assert (found.code, found.secondary[0].span.text) == ("AFL1004", "daily")
