"""What waits for people: facets with `Human`, and what turns of agents ask a person for.

The first answer wins and goes to whoever waits; it is one write, so it is never half given. Who
gave it is noted in the task, which ends with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from afl.kernel.model import Call, CallStatus, Json, State, Stopped, Task, TaskId
from afl.runtime.calls import NO_TIMEOUT
from afl.runtime.conversions import WrongValue
from afl.runtime.errors import AlreadyAnswered, BadInputs, UnknownItem
from afl.runtime.forms import fill_in
from afl.runtime.json_types import JsonTypes
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.plan import Plan
from afl.runtime.programs import Plans

#: The `type` of the error that a rejected step fails with, and of the note in an answered task.
REJECTED, ANSWERED = "Rejected", "Answered"

#: What is asked when a turn wants to call a tool that a person has to agree to.
APPROVE = "afl.Approve"

_PAGE = 100


@dataclass(frozen=True, slots=True)
class InboxItem:
    """Something that a person is asked for."""

    task: str
    facet: str
    #: what is asked, in one line
    title: str
    #: what the person sees
    params: Mapping[str, Json]
    group: str
    #: JSON Schema of the answer, an object
    form: Mapping[str, Json]
    since: datetime
    #: None if it waits for ever
    deadline: datetime | None
    #: what happens when the deadline comes; None without one
    at_deadline: str | None
    run: str
    #: the step that waits; with `#` and a key behind it, a tool call of that step
    step: str | None

    def as_json(self) -> dict[str, Json]:
        return {
            "task": self.task,
            "facet": self.facet,
            "title": self.title,
            "params": dict(self.params),
            "group": self.group,
            "form": dict(self.form),
            "since": self.since.isoformat(),
            "deadline": None if self.deadline is None else self.deadline.isoformat(),
            "at_deadline": self.at_deadline,
            "run": self.run,
            "step": self.step,
        }


class Inbox:
    """The requests to people on one store. Threads may share one."""

    def __init__(
        self,
        persistence: PersistenceAPI,
        plans: Plans,
        ring: Callable[[Iterable[str]], None] | None = None,
    ) -> None:
        self._persistence = persistence
        self._kernel = persistence.kernel
        self._plans = plans
        self._ring = ring

    def list(
        self, group: str | None = None, *, after: str | None = None, limit: int = _PAGE
    ) -> list[InboxItem]:
        """What waits for an answer, the oldest first; of one group, or of all."""
        tasks = self._persistence.human_tasks(
            group, None if after is None else TaskId(after), limit
        )
        return [self._item(task) for task in tasks]

    def get(self, task: str) -> InboxItem:
        """One request that waits for an answer.

        Raises:
            UnknownItem: there is no such request. AlreadyAnswered: it has its answer, or its time
                is over.
        """
        found, _ = self._open(task)
        return self._item(found)

    def answer(self, task: str, values: Mapping[str, Json], *, by: str = "") -> None:
        """Gives the answer of a person. The first one counts.

        Args:
            values: what the form asks for, by name.
            by: who answers.

        Raises:
            BadInputs: the values do not fit the form; the message names the field.
            UnknownItem, AlreadyAnswered: as in `get`.
        """
        found, call = self._open(task)
        self._reply(found, call, CallStatus.OK, self._filled(found, values), by)

    def reject(self, task: str, reason: str = "", *, by: str = "") -> None:
        """Refuses to do it: what waits fails with the type `Rejected` and this reason. What was
        only to be approved is not approved.

        Raises:
            UnknownItem, AlreadyAnswered: as in `get`.
        """
        found, call = self._open(task)
        told = reason or f"{by or 'A person'} has rejected it."
        if _is_approval(found):
            self._reply(found, call, CallStatus.OK, {"approved": False, "reason": told}, by)
        else:
            error: Json = {"type": REJECTED, "message": told}
            self._reply(found, call, CallStatus.ERROR, error, by)

    def _open(self, id_: str) -> tuple[Task, Call]:
        task = self._kernel.get_task(TaskId(id_))
        if task is None or task.kind != "human":
            raise UnknownItem(
                f"Nobody is asked for anything by {id_}. `afl inbox list` shows what waits."
            )
        call = None if task.parent_call is None else self._kernel.get_call(task.parent_call)
        if call is None or call.status is not CallStatus.OPEN or task.state is State.CLOSED:
            raise _too_late(task, call)
        return task, call

    def _reply(self, task: Task, call: Call, status: CallStatus, body: Json, by: str) -> None:
        note: Json = {
            "type": ANSWERED,
            "message": f"It was answered by {by or 'somebody'}.",
            "by": by,
        }
        won = self._kernel.reply(call.id, status, body)
        # the same answer of two people is taken for one that was repeated, so the note decides
        stopped = self._kernel.stop(task.id, force=True, error=note) if won else None
        if not won or stopped is Stopped.ALREADY_CLOSED:
            found = self._kernel.get_task(task.id) or task
            if not won or found.error != note:
                raise _too_late(found, self._kernel.get_call(call.id))
        caller = self._kernel.get_task(call.caller)
        if self._ring is not None and caller is not None:
            self._ring([caller.list])

    def _filled(self, task: Task, values: Mapping[str, Json]) -> dict[str, Json]:
        form, plan = _own_form(task), self._plan(task)
        try:
            if form is not None:
                return fill_in(form, values)
            if plan is None:
                return dict(values)
            facet = plan.facet(str(_given(task)["facet"])).facet
            return plan.conversions.record(values, facet.returns)
        except WrongValue as error:
            raise BadInputs(
                f"This is not what the form asks for: {error} `afl inbox show {task.id}` shows it."
            ) from error

    def _item(self, task: Task) -> InboxItem:
        given = _given(task)
        facet, params = str(given.get("facet") or task.name), given.get("params")
        title, step = str(given.get("title") or ""), given.get("step")
        form, plan = _own_form(task), self._plan(task)
        if form is None and plan is not None:
            types = JsonTypes(plan.program)
            form = types.returns(plan.facet(facet).facet)
            title = title or types.doc(facet).summary
        deadline = task.deadline
        if deadline is not None and deadline - task.created_at >= NO_TIMEOUT:
            deadline = None
        return InboxItem(
            task=task.id,
            facet=facet,
            title=title or facet.rpartition(".")[2],
            params=params if isinstance(params, dict) else {},
            group=str(given.get("group") or ""),
            form=form or {},
            since=task.created_at,
            deadline=deadline,
            at_deadline=None if deadline is None else _at_deadline(given),
            run=str(given.get("run") or task.run),
            step=step if isinstance(step, str) else None,
        )

    def _plan(self, task: Task) -> Plan | None:
        program = _given(task).get("program")
        return self._plans.get(program) if isinstance(program, str) else None


def _too_late(task: Task, call: Call | None) -> AlreadyAnswered:
    """Why a request takes no answer any more."""
    error = task.error if isinstance(task.error, dict) else {}
    if error.get("type") == ANSWERED:
        return AlreadyAnswered(f"It was already answered by {error.get('by') or 'somebody'}.")
    if call is not None and call.status is CallStatus.TIMEOUT:
        return AlreadyAnswered(f"Its time was over at {_time(call.deadline)}: nobody waits for it.")
    if call is not None and call.status in (CallStatus.OK, CallStatus.ERROR):
        return AlreadyAnswered("It was already answered.")
    return AlreadyAnswered("Nobody waits for it any more: what asked for it was stopped.")


def _own_form(task: Task) -> dict[str, Json] | None:
    """The form that whoever asks has written, instead of a facet."""
    form = _given(task).get("form")
    return form if isinstance(form, dict) else None


def _is_approval(task: Task) -> bool:
    """Whether a person is only asked to agree to something."""
    fields = (_own_form(task) or {}).get("properties")
    return isinstance(fields, dict) and "approved" in fields


def _at_deadline(given: Mapping[str, Json]) -> str:
    if isinstance(given.get("form"), dict):
        return "What was asked for is not done, and the model is told."
    if "#" in str(given.get("step")):
        return "The model that asked is told that nobody answered."
    return "The step fails with the error type `Timeout`, which a `catch` can handle."


def _given(task: Task) -> Mapping[str, Json]:
    return task.input if isinstance(task.input, dict) else {}


def _time(moment: datetime) -> str:
    return moment.isoformat(" ", "seconds")
