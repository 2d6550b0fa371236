"""Nodes to a pipeline. Every key is known, given once and of the right kind, or it is a problem.

A part that cannot be read does not keep the rest from being looked at: all problems of a file come
at once, and None stands for what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial

from afl.base.cron import CRON_FORM, cron_problem
from afl.pipelines.crons import five_fields
from afl.pipelines.fields import Fields, bare, kind_of
from afl.pipelines.model import Link, Pipeline, Subprocess, Task, Text, UvPython
from afl.pipelines.nodes import Entries, Node, Scalar
from afl.pipelines.ordering import check_order
from afl.pipelines.problems import Fix, Problems, Range, listed

TAGS = ("!Subprocess", "!UvPython")

_PIPELINE = ("name", "description", "cron", "start_time", "tasks")
_TASK = ("name", "description", "depends", "config")
_SUBPROCESS = ("cmd", "args")
_UV_PYTHON = ("script_path", "packages", "is_uv_project", "uv_path", "working_directory")

#: What other tools call these things.
_ALSO_CALLED = {
    "after": "depends",
    "arguments": "args",
    "command": "cmd",
    "cwd": "working_directory",
    "dependencies": "depends",
    "depends_on": "depends",
    "needs": "depends",
    "schedule": "cron",
    "script": "script_path",
    "start": "start_time",
    "steps": "tasks",
    "jobs": "tasks",
    "type": "config",
}

_LONGEST_ID = 100
_ID = re.compile(r"\w[\w-]*\Z")
#: Names that the paths of a run use for other things.
_TAKEN = re.compile(r"(?:[0-9]+|catch|with|(?:case|yield|log|assert)-[0-9]+)\Z")


def read_pipeline(node: Node | None, problems: Problems) -> Pipeline | None:
    """The pipeline that a document describes; None if it is not one."""
    if not isinstance(node, Entries):
        range = Range(0, 0) if node is None else node.range
        found = "nothing" if node is None else kind_of(node)
        problems.add(
            "AFL5005",
            range,
            f"a pipeline is a mapping with {listed(_PIPELINE, 'and')}, and this file holds {found}",
            "not a pipeline",
        )
        return None
    fields = Fields(node, "a pipeline", _PIPELINE, problems, _ALSO_CALLED)
    name = fields.required("name", fields.text)
    description = fields.optional("description", fields.text)
    cron = fields.optional("cron", fields.text)
    start = fields.optional("start_time", fields.text)
    tasks = fields.required("tasks", lambda value: _read_tasks(value, problems))
    if cron is not None:
        cron = _read_cron(cron, problems)
    if start is not None:
        start = _read_time(start, problems)
    if name is None or tasks is None:
        return None
    return Pipeline(node.range, name, bare(description), cron, start, tasks)


def _read_tasks(node: Node, problems: Problems) -> tuple[Task, ...] | None:
    if not isinstance(node, Entries):
        problems.add(
            "AFL5005",
            node.range,
            f"`tasks` is a mapping from ids to tasks, not {kind_of(node)}",
            "not tasks",
        )
        return None
    if not node.values:
        problems.add("AFL5004", node.range, "`tasks` is empty, so there is nothing to run", "empty")
        return None
    fields = Fields(node, "`tasks`", None, problems)
    tasks = []
    links: list[Link] = []
    for key, value in fields.all():
        _check_id(key, problems)
        tasks.append(_read_task(key, value, links, problems))
    check_order(links, problems)
    whole = [task for task in tasks if task is not None]
    return tuple(whole) if len(whole) == len(tasks) else None


def _check_id(id: Text, problems: Problems) -> None:
    if not _ID.match(id.value) or len(id.value) > _LONGEST_ID:
        why = f"is made of letters, digits, `_` and `-`, {_LONGEST_ID} at most"
    elif _TAKEN.match(id.value):
        why = "cannot be a number or a word that the paths of runs use"
    else:
        return
    problems.add("AFL5010", id.range, f"the id of a task {why}", "not an id")


def _read_task(id: Text, node: Node, links: list[Link], problems: Problems) -> Task | None:
    """The task. Its link is noted even if the rest of it cannot be read: others depend on it."""
    if not isinstance(node, Entries):
        links.append(Link(id, ()))
        problems.add(
            "AFL5005",
            node.range,
            f"a task is a mapping with {listed(_TASK, 'and')}, not {kind_of(node)}",
            "not a task",
        )
        return None
    fields = Fields(node, f"the task `{id.value}`", _TASK, problems, _ALSO_CALLED, id.range)
    name = fields.required("name", fields.text)
    description = fields.optional("description", fields.text)
    depends = fields.optional("depends", fields.texts)
    config = fields.required(
        "config", partial(_read_config, id, fields.place_of("config"), problems)
    )
    link = Link(id, depends or ())
    links.append(link)
    if name is None or config is None:
        return None
    range = Range(id.range.start, max(id.range.end, node.range.end))
    return Task(link, range, name.value, bare(description), config)


def _read_config(
    id: Text, key: Range, problems: Problems, node: Node
) -> Subprocess | UvPython | None:
    readers: dict[str, Callable[[Entries], Subprocess | UvPython | None]] = {
        "!Subprocess": lambda node: _read_subprocess(id, node, problems),
        "!UvPython": lambda node: _read_uv_python(id, node, problems),
    }
    if node.tag is None:
        problems.add(
            "AFL5006",
            key,
            f"the config of the task `{id.value}` does not say what it runs",
            "no tag",
            notes=(f"it is {listed(TAGS, 'or')}",),
            fixes=(_tag_for(node),),
        )
        return None
    reader = readers.get(node.tag.name)
    if reader is None:
        problems.add(
            "AFL5006",
            node.tag.range,
            f"the task `{id.value}` runs something that is not known",
            "unknown tag",
            notes=(f"it is {listed(TAGS, 'or')}",),
            candidates=TAGS,
        )
        return None
    if not isinstance(node, Entries):
        # a tag with nothing behind it is a text
        empty = isinstance(node, Scalar) and not node.text
        problems.add(
            "AFL5005",
            node.range,
            f"`{node.tag.name}` is a mapping, {'and' if empty else 'not'} "
            f"{'there is nothing below it' if empty else kind_of(node)}",
            "not a mapping",
        )
        return None
    return reader(node)


def _tag_for(node: Node) -> Fix:
    """Writes the tag that the keys of a config call for."""
    keys = (
        {key.text for key, _ in node.values if isinstance(key, Scalar)}
        if isinstance(node, Entries)
        else set()
    )
    tag = "!UvPython" if keys & set(_UV_PYTHON) and not keys & set(_SUBPROCESS) else "!Subprocess"
    return Fix(f"write `config: {tag}`, with its keys below it")


def _read_subprocess(id: Text, node: Entries, problems: Problems) -> Subprocess | None:
    what = f"the command of the task `{id.value}`"
    fields = Fields(node, what, _SUBPROCESS, problems, _ALSO_CALLED, _tag_range(node))
    cmd = fields.required("cmd", fields.text)
    args = fields.optional("args", fields.texts)
    if cmd is None:
        return None
    if not cmd.value:
        problems.add("AFL5004", cmd.range, "`cmd` is empty, so there is nothing to run", "empty")
        return None
    return Subprocess(cmd.value, _bares(args))


def _read_uv_python(id: Text, node: Entries, problems: Problems) -> UvPython | None:
    what = f"the script of the task `{id.value}`"
    fields = Fields(node, what, _UV_PYTHON, problems, _ALSO_CALLED, _tag_range(node))
    script = fields.required("script_path", fields.text)
    packages = fields.optional("packages", fields.texts)
    is_project = fields.optional("is_uv_project", fields.boolean)
    uv_path = fields.optional("uv_path", fields.text)
    directory = fields.optional("working_directory", fields.text)
    if script is None:
        return None
    return UvPython(
        script.value, _bares(packages), is_project or False, bare(uv_path), bare(directory)
    )


def _read_cron(cron: Text, problems: Problems) -> Text | None:
    found = five_fields(cron)
    if not isinstance(found, Text):
        problems.found.append(found)
        return None
    wrong = cron_problem(found.value)
    if not wrong:
        return found
    problems.add(
        "AFL4021",
        cron.range,
        f"this is not a cron expression: {wrong}",
        "malformed",
        notes=(CRON_FORM,),
    )
    return None


def _read_time(text: Text, problems: Problems) -> Text | None:
    try:
        time = datetime.fromisoformat(text.value)
    except ValueError:
        time = None
    if time is not None and time.tzinfo is not None:
        return Text(time.isoformat(), text.range)
    what = "does not say its zone" if time is not None else "is not a time"
    problems.add(
        "AFL5011",
        text.range,
        f"`{text.value[:40]}` {what}",
        "malformed",
        notes=("a time is written as in `2027-01-31T09:00:00+00:00`",),
    )
    return None


def _tag_range(node: Entries) -> Range:
    assert node.tag is not None  # it was chosen by its tag
    return node.tag.range


def _bares(texts: tuple[Text, ...] | None) -> tuple[str, ...]:
    return tuple(text.value for text in texts or ())
