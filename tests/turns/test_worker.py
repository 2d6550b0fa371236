"""The turn worker: many turns at once, leases, drains, and processes that are killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from afl.base.system import SystemClock, SystemIds
from afl.kernel.doorbell import LocalDoorbell
from afl.kernel.errors import StoreUnavailable
from afl.kernel.memory import MemoryStore
from afl.kernel.model import (
    Claim,
    ClaimRequest,
    Close,
    Outcome,
    Renewal,
    State,
    TaskId,
    TaskSpec,
    WorkerId,
    WorkerState,
)
from afl.kernel.waiting import PollPolicy
from afl.turns import cards
from afl.turns import worker as turn_worker
from afl.turns.feed import SilentFeed
from afl.turns.joining import Joining, JoinMode, join_spec
from afl.turns.journal import Thought
from afl.turns.loop import TurnLoop
from afl.turns.memory_store import MemoryTurnStore
from afl.turns.model import (
    Allowance,
    BudgetKey,
    Deliverable,
    Ending,
    ModelRequest,
    Reply,
    Text,
)
from afl.turns.models.scripted import Answer, Call, ScriptedModel
from afl.turns.ports import Listener, Model, TurnStore
from afl.turns.prices import PriceBook
from afl.turns.worker import TurnWorker, TurnWorkerConfig
from tests.chaos.sink import REPOSITORY
from tests.turns.driving import (
    PATIENCE_SECONDS,
    SCRIPTED,
    FacetTools,
    FixedBriefs,
    OneModel,
    brief,
    eventually,
    is_closed,
    task_of,
    tool,
    turn_task,
)
from tests.turns.lasting_stores import LastingTurns

QUICK = PollPolicy(0.01, 0.05)
DONE = ScriptedModel([Answer("Done.")])


class Gate:
    """A model that answers when the gate is open; it counts who waits."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self._condition = threading.Condition()
        self.entered = 0
        self.inside = 0
        self.most = 0

    async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
        self._count(1)
        try:
            while not self.open.is_set():
                await asyncio.sleep(0.005)
        finally:
            self._count(-1)
        return Reply((Text("Done."),), "stop", SCRIPTED)

    def _count(self, by: int) -> None:
        with self._condition:
            self.entered += by > 0
            self.inside += by
            self.most = max(self.most, self.inside)
            self._condition.notify_all()

    def wait_for(self, condition: Callable[[Gate], bool], seconds: float) -> None:
        with self._condition:
            assert self._condition.wait_for(lambda: condition(self), seconds), vars(self)


class Serving:
    """A store, and the turn workers that a test starts on it."""

    def __init__(self, store: TurnStore) -> None:
        self.store = store
        self.kernel = store.kernel
        self.bell = LocalDoorbell()
        self.workers: list[TurnWorker] = []

    def worker(self, model: Model, **options: object) -> TurnWorker:
        given = {"lease_seconds": 5.0, "renew_seconds": 0.1, "poll": QUICK, **options}
        servers = given.pop("servers", ())
        loop = TurnLoop(
            self.store,
            OneModel(model),
            PriceBook(),
            FixedBriefs(brief(tool("sweep"))),
            FacetTools(),
            SilentFeed(),
            self.bell.ring,
        )
        config = TurnWorkerConfig(**given)  # type: ignore[arg-type]
        worker = TurnWorker(loop, config, self.bell, servers=servers)  # type: ignore[arg-type]
        worker.start()
        self.workers.append(worker)
        return worker

    def start(self, count: int = 1, **more: object) -> list[TaskId]:
        specs = [turn_task(f"agent-{n}", **more) for n in range(count)]
        tasks = self.kernel.enqueue(specs)
        self.bell.ring(["default"])
        return [task.id for task in tasks]

    def wait_closed(self, turns: list[TaskId]) -> None:
        eventually(lambda: all(is_closed(self.kernel, turn) for turn in turns), "turns end")

    def outcomes(self, turns: list[TaskId]) -> set[Outcome | None]:
        return {task_of(self.kernel, turn).outcome for turn in turns}

    def close(self) -> None:
        for worker in self.workers:
            worker.drain(0.2)


@pytest.fixture
def served() -> Iterator[Serving]:
    """On a store in memory, on the real clock."""
    made = Serving(MemoryTurnStore(MemoryStore(SystemClock(), SystemIds())))
    yield made
    made.close()


@pytest.fixture
def lasting(lasting_turns: LastingTurns) -> Iterator[Serving]:
    """On a database."""
    with lasting_turns.store(max_size=16) as store:
        made = Serving(store)
        yield made
        made.close()


# Serving


def test_turns_of_many_agents_go_on_at_once(served: Serving) -> None:
    gate = Gate()
    served.worker(gate, slots=20)
    turns = served.start(30)
    gate.wait_for(lambda g: g.inside == 20, PATIENCE_SECONDS)
    gate.open.set()
    served.wait_closed(turns)
    assert served.outcomes(turns) == {Outcome.SUCCESS}
    assert gate.most == 20


def test_an_agent_takes_its_turns_one_after_the_other(served: Serving) -> None:
    gate = Gate()
    served.worker(gate)
    turns = [task.id for task in served.kernel.enqueue([turn_task("ann")] * 3)]
    gate.wait_for(lambda g: g.inside == 1, PATIENCE_SECONDS)
    states = [task_of(served.kernel, turn).state for turn in turns]
    assert states == [State.RUNNING, State.QUEUED, State.QUEUED]
    gate.open.set()
    served.wait_closed(turns)
    assert (gate.entered, gate.most) == (3, 1)


def test_joins_and_other_servers_are_served_beside_turns(served: Serving) -> None:
    class Doubling:
        def names(self) -> tuple[str, ...]:
            return ("mcp:maths",)

        async def serve(self, claim: Claim) -> Close:
            assert isinstance(claim.task.input, int)
            return Close(Outcome.SUCCESS, result=2 * claim.task.input)

    served.worker(DONE, servers=(Doubling(),))
    branches = (TaskSpec("mcp", "mcp:maths", input=4), turn_task("ann"))
    (task,) = served.kernel.enqueue([join_spec(Joining(JoinMode.ALL, branches))])
    served.wait_closed([task.id])
    assert task_of(served.kernel, task.id).result == {
        "status": "success",
        "results": [
            {"index": 0, "status": "ok", "result": 8},
            {"index": 1, "status": "ok", "result": {"text": "Done."}},
        ],
    }


def test_names_that_appear_later_are_served(
    served: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_worker, "_NAMES_SECONDS", 0.02)

    class Later:
        served: tuple[str, ...] = ()

        def names(self) -> tuple[str, ...]:
            return self.served

        async def serve(self, claim: Claim) -> Close:
            return Close(Outcome.SUCCESS)

    server = Later()
    worker = served.worker(DONE, servers=(server,))
    (task,) = served.kernel.enqueue([TaskSpec("mcp", "mcp:later")])
    server.served = ("mcp:later",)
    served.wait_closed([task.id])
    known = served.kernel.get_worker(worker.id)
    assert known is not None
    assert set(known.handlers) == {"agent:default", "afl:join", "mcp:later"}
    assert known.state is WorkerState.RUNNING


def test_a_turn_that_waits_for_a_budget_goes_on_when_it_is_raised(served: Serving) -> None:
    key = BudgetKey("tenant", "default")
    served.store.set_budget(key, Allowance(model_calls=0))
    served.worker(DONE)
    (turn,) = served.start()
    eventually(lambda: task_of(served.kernel, turn).state is State.WAITING, "it waits")
    served.store.set_budget(key, Allowance(model_calls=1))
    served.wait_closed([turn])
    assert served.outcomes([turn]) == {Outcome.SUCCESS}


# Stopping and draining


def test_a_turn_that_is_stopped_while_the_model_thinks_ends_with_a_deliverable(
    served: Serving,
) -> None:
    gate = Gate()
    served.worker(gate)
    (turn,) = served.start()
    gate.wait_for(lambda g: g.inside == 1, PATIENCE_SECONDS)
    served.kernel.stop(turn)
    served.wait_closed([turn])
    gate.wait_for(lambda g: g.inside == 0, PATIENCE_SECONDS)
    delivered = cards.read(served.kernel.read_box(turn)[-1])
    assert isinstance(delivered, Deliverable)
    assert delivered.ending is Ending.STOPPED


def test_a_turn_that_is_stopped_by_force_is_dropped(served: Serving) -> None:
    gate = Gate()
    served.worker(gate)
    (turn,) = served.start()
    gate.wait_for(lambda g: g.inside == 1, PATIENCE_SECONDS)
    served.kernel.stop(turn, force=True)
    gate.wait_for(lambda g: g.inside == 0, PATIENCE_SECONDS)
    assert served.kernel.read_box(turn) == []


def test_a_drained_worker_lets_requests_finish(served: Serving) -> None:
    gate = Gate()
    worker = served.worker(gate)
    (turn,) = served.start()
    gate.wait_for(lambda g: g.inside == 1, PATIENCE_SECONDS)
    threading.Timer(0.1, gate.open.set).start()
    assert worker.drain(PATIENCE_SECONDS)
    assert served.outcomes([turn]) == {Outcome.SUCCESS}
    assert not worker.is_running


def test_a_drained_worker_hands_back_what_does_not_finish(served: Serving) -> None:
    gate = Gate()
    worker = served.worker(gate)
    turns = served.start(3)
    gate.wait_for(lambda g: g.inside == 3, PATIENCE_SECONDS)
    assert not worker.drain(0.05)
    states = {task_of(served.kernel, turn).state for turn in turns}
    assert states == {State.READY}
    assert {task_of(served.kernel, turn).crashes for turn in turns} == {0}
    served.worker(DONE)
    served.wait_closed(turns)


class Endless:
    """A server whose work never ends."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)

    def names(self) -> tuple[str, ...]:
        return ("mcp:endless",)

    async def serve(self, claim: Claim) -> Close:
        self.begun.release()
        await asyncio.Event().wait()
        return Close(Outcome.SUCCESS)


@pytest.mark.parametrize(
    ("max_crashes", "state", "code"),
    [(5, State.READY, None), (0, State.CLOSED, "interrupted")],
)
def test_what_must_not_be_done_twice_is_not_handed_back(
    served: Serving, max_crashes: int, state: State, code: str | None
) -> None:
    server = Endless()
    worker = served.worker(DONE, servers=(server,))
    spec = TaskSpec("mcp", "mcp:endless", max_crashes=max_crashes)
    (task,) = served.kernel.enqueue([spec])
    assert server.begun.acquire(timeout=PATIENCE_SECONDS)
    assert not worker.drain(0.05)
    left = task_of(served.kernel, task.id)
    assert left.state is state
    error = left.error
    assert (error["code"] if isinstance(error, dict) else None) == code


def test_other_work_that_is_stopped_is_cancelled(served: Serving) -> None:
    server = Endless()
    served.worker(DONE, servers=(server,))
    (task,) = served.kernel.enqueue([TaskSpec("mcp", "mcp:endless")])
    assert server.begun.acquire(timeout=PATIENCE_SECONDS)
    served.kernel.stop(task.id)
    served.wait_closed([task.id])
    assert served.outcomes([task.id]) == {Outcome.CANCELED}


# Leases


def test_a_blocked_event_loop_does_not_lose_the_lease(served: Serving) -> None:
    class Blocking:
        async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
            time.sleep(1.2)  # as a careless client would, for longer than the lease
            return Reply((Text("Done."),), "stop", SCRIPTED)

    worker = served.worker(Blocking(), lease_seconds=0.5, renew_seconds=0.1)
    (turn,) = served.start()
    served.wait_closed([turn])
    assert served.outcomes([turn]) == {Outcome.SUCCESS}
    assert task_of(served.kernel, turn).crashes == 0
    assert worker.is_running


class Losing(MemoryStore):
    """A store that loses the answers to the first claims that bring something."""

    losses = 1

    def claim(self, request: ClaimRequest) -> list[Claim]:
        claims = super().claim(request)
        if claims and self.losses:
            self.losses -= 1
            raise StoreUnavailable("the answer is lost")
        return claims


def test_a_claim_whose_answer_is_lost_is_made_again(served: Serving) -> None:
    kernel = Losing(SystemClock(), SystemIds())
    world = Serving(MemoryTurnStore(kernel))
    world.worker(DONE)
    turns = world.start(3)
    world.wait_closed(turns)
    assert {task_of(kernel, turn).crashes for turn in turns} == {0}
    world.close()


def test_a_stray_is_handed_back_and_taken_again(served: Serving) -> None:
    """The store thinks that the worker holds a turn which it knows nothing of."""
    worker = served.worker(DONE, targets=())
    (turn,) = [task.id for task in served.kernel.enqueue([TaskSpec("turn", "agent:elsewhere")])]
    assert served.kernel.take(worker.id, turn) is not None
    eventually(lambda: task_of(served.kernel, turn).state is State.READY, "it is handed back")


def test_a_worker_that_the_store_has_forgotten_makes_itself_known_again() -> None:
    class Forgetful(MemoryStore):
        forgets = False

        def renew(self, worker: WorkerId, held: object = ()) -> Renewal:
            if self.forgets:
                self.forgets = False
                del self._rows.workers[worker]
            return super().renew(worker, held)  # type: ignore[arg-type]

    kernel = Forgetful(SystemClock(), SystemIds())
    world = Serving(MemoryTurnStore(kernel))
    worker = world.worker(DONE)
    kernel.forgets = True
    eventually(lambda: not kernel.forgets, "it is forgotten")
    turns = world.start(2)
    world.wait_closed(turns)
    assert kernel.get_worker(worker.id) is not None
    world.close()


# On databases


def test_turns_with_tools_and_repairs_end_on_a_database(lasting: Serving) -> None:
    script = [
        Answer(calls=(Call("nothing", {}),)),
        Answer(calls=(Call("sweep", {"n": 1}),)),
        Answer("Done."),
    ]
    sweeping = lasting.worker(ScriptedModel(script), slots=10)

    class Sweep:
        def names(self) -> tuple[str, ...]:
            return ("sweep",)

        async def serve(self, claim: Claim) -> Close:
            return Close(Outcome.SUCCESS, result="swept")

    lasting.worker(DONE, lists=("tools",), targets=(), servers=(Sweep(),))
    lasting.store.set_budget(BudgetKey("tenant", "default"), Allowance(model_calls=100))
    turns = lasting.start(20)
    lasting.wait_closed(turns)
    assert lasting.outcomes(turns) == {Outcome.SUCCESS}
    budget = lasting.store.get_budget(BudgetKey("tenant", "default"))
    assert budget is not None
    assert (budget.spent.model_calls, budget.spent.tool_calls) == (60, 20)
    assert budget.reserved.model_calls == 0
    assert sum(each.requests for each in lasting.store.usage("agent")) == 60
    assert all(loop.errors == 0 for loop in sweeping.health()), sweeping.health()


def test_a_turn_without_room_on_a_database_waits_until_there_is_some(lasting: Serving) -> None:
    key = BudgetKey("tenant", "default")
    lasting.store.set_budget(key, Allowance(model_calls=2))
    lasting.worker(DONE)
    turns = lasting.start(5)
    eventually(
        lambda: (
            sorted(task_of(lasting.kernel, turn).state.value for turn in turns)
            == ["closed"] * 2 + ["waiting"] * 3
        ),
        "two have room, three wait",
    )
    lasting.store.set_budget(key, Allowance(model_calls=5))
    lasting.wait_closed(turns)
    assert lasting.outcomes(turns) == {Outcome.SUCCESS}
    budget = lasting.store.get_budget(key)
    assert budget is not None
    assert (budget.spent.model_calls, budget.reserved.model_calls) == (5, 0)


@pytest.mark.slow
def test_two_workers_have_500_turns_in_progress(lasting: Serving) -> None:
    gate = Gate()
    for _ in range(2):
        lasting.worker(gate, slots=250, lease_seconds=10.0, renew_seconds=2.0)
    turns = lasting.start(600)
    gate.wait_for(lambda g: g.inside == 500, 60)
    assert sorted(worker.in_hand for worker in lasting.workers) == [250, 250]
    gate.open.set()
    lasting.wait_closed(turns)
    assert lasting.outcomes(turns) == {Outcome.SUCCESS}
    assert gate.entered == 600
    assert {task_of(lasting.kernel, turn).crashes for turn in turns} == {0}


# Processes

#: On MongoDB the transaction of a process that was killed is ended some seconds later, and nobody
#: has what it was about to change before that.
_A_KILL_SECONDS = 120.0


class Processes:
    """Turn workers as processes, whose model waits for files in a folder."""

    def __init__(self, turns: LastingTurns, folder: Path) -> None:
        self._turns, self.folder = turns, folder
        self._all: list[subprocess.Popen[bytes]] = []

    def start(self, name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.turns.worker_process", self._turns.kind]
        words = [*command, self._turns.url, str(self.folder), name]
        process = subprocess.Popen(words, cwd=REPOSITORY)
        self._all.append(process)
        return process

    def asked(self, number: int, name: str) -> None:
        path = self.folder / f"{number}.asked.{name}"
        eventually(path.exists, f"{name} asks the model for the {number}th time")

    def let(self, number: int) -> None:
        (self.folder / f"{number}.go").touch()

    def close(self) -> None:
        for process in self._all:
            process.kill()
        for process in self._all:
            process.wait()


@pytest.fixture
def processes(lasting_turns: LastingTurns, tmp_path: Path) -> Iterator[Processes]:
    made = Processes(lasting_turns, tmp_path)
    yield made
    made.close()


def test_a_worker_that_is_killed_in_the_middle_of_a_turn_is_followed_by_another(
    processes: Processes, lasting_turns: LastingTurns
) -> None:
    with lasting_turns.store() as store:
        kernel = store.kernel
        (task,) = kernel.enqueue([turn_task()])
        first = processes.start("one")
        processes.let(0)
        processes.asked(1, "one")
        # the first answer is committed, the second request is under way
        assert len(kernel.read_box(task.id)) == 3
        first.kill()
        first.wait()
        processes.start("two")
        processes.asked(1, "two")
        assert task_of(kernel, task.id).crashes == 1
        processes.let(1)
        processes.let(2)
        eventually(lambda: is_closed(kernel, task.id), "the turn ends")
        ended = task_of(kernel, task.id)
        assert (ended.outcome, ended.result) == (Outcome.SUCCESS, {"text": "All is tidy."})
        journal = kernel.read_box(task.id)
        assert [thought.number for thought in cards.find(journal, Thought)] == [0, 1, 2]
        assert not (processes.folder / "0.asked.two").exists()
        assert [each.requests for each in store.usage("task")] == [3]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_turns_outlive_workers_that_are_killed_again_and_again(
    processes: Processes, lasting_turns: LastingTurns
) -> None:
    with lasting_turns.store() as store:
        kernel = store.kernel
        key = BudgetKey("tenant", "default")
        store.set_budget(key, Allowance(model_calls=100_000))
        for number in range(3):
            processes.let(number)
        turns = [
            task.id for task in kernel.enqueue([turn_task(f"agent-{n % 20}") for n in range(100)])
        ]
        workers = [processes.start(f"first-{n}") for n in range(2)]
        for round_ in range(4):
            victim = workers[round_ % 2]
            eventually(
                lambda: bool(list(processes.folder.glob("*.asked.*"))),
                "somebody works",
                _A_KILL_SECONDS,
            )
            done = sum(is_closed(kernel, turn) for turn in turns)
            eventually(
                lambda done=done: sum(is_closed(kernel, turn) for turn in turns) > done,  # type: ignore[misc]
                "some turns end",
                _A_KILL_SECONDS,
            )
            victim.kill()
            victim.wait()
            workers[round_ % 2] = processes.start(f"next-{round_}")
        eventually(
            lambda: all(is_closed(kernel, turn) for turn in turns), "all turns end", _A_KILL_SECONDS
        )
        assert {task_of(kernel, turn).outcome for turn in turns} == {Outcome.SUCCESS}
        journals = {tuple(card.hash for card in kernel.read_box(turn)) for turn in turns}
        assert len(journals) == 1, "whoever was killed, every journal is the same"
        assert sum(each.requests for each in store.usage("task", limit=1000)) == 300
        entries = [
            entry.task for entry in kernel.read_outbox(limit=5000) if entry.topic == "closed"
        ]
        assert sorted(entries) == sorted(turns)
        budget = store.get_budget(key)
        assert budget is not None
        assert budget.spent.model_calls >= 300, "what was asked and lost is counted too"
        assert budget.reserved.model_calls == 0
