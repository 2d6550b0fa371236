"""Random games against any number of stores at once. Needs hypothesis.

Each step does the same to the reference and to every store, and compares: the answers, then all
rows, then the invariants. Fences and numbers are stale on purpose, answers come twice, workers
vanish, time jumps, transactions fail half-way.

    TestGames = kernel_machine(MemoryHarness).TestCase
    TestGames.settings = settings(max_examples=100)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from afl.testing.conformance.harness import Harness
from afl.testing.conformance.reference import (
    RCallSpec,
    RClaim,
    RCommit,
    RCommitted,
    Reference,
    RRequest,
    RTask,
    Work,
)
from afl.testing.conformance.sides import Answer, Side, grains, outcome_of

WORKERS = {"w": ("a", "b"), "v": ("a",)}
#: Durations are odd multiples of five seconds and time moves by tens, so that no deadline is met
#: to the second, where two clocks could disagree.
LEASE_SECONDS = 65.0

_names = st.sampled_from(["a", "x.a", "b"])
_values = st.sampled_from([None, "one", "two"])
_index = st.integers(0, 99)
_tokens = st.sampled_from([None, None, "t", "u"])
_seconds = st.sampled_from([15.0, 35.0, 95.0])


def works(*, callee: bool = False) -> st.SearchStrategy[Work]:
    return st.builds(
        Work,
        name=_names,
        lane=st.sampled_from([None, "l", "m"]),
        hold=st.booleans(),
        priority=st.integers(-1, 1),
        delay=st.sampled_from([0, 0, 0, 15.0]),
        timeout=st.none() | _seconds,
        wake_any=st.booleans(),
        max_failures=st.integers(0, 2),
        max_crashes=st.integers(0, 1),
        idem=st.none() if callee else st.sampled_from([None, None, "i", "j"]),
    )


_calls = st.lists(
    st.builds(
        RCallSpec,
        key=st.sampled_from(["k1", "k2", "k3"]),
        work=works(callee=True),
        timeout=_seconds,
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda spec: spec.key,
)
_requests = st.builds(
    RRequest,
    worker=st.sampled_from([*WORKERS]),
    name=st.sampled_from(["a", "b", "x.a"]),
    n=st.integers(1, 3),
    token=_tokens,
)
_thens = st.sampled_from(
    ["suspend", "suspend", "continue", "success", "failed", "failed", "partial"]
)
#: Which of its answers a commit applies, and which number it bears, off by so many.
_applied = st.sampled_from(["all", "first", "none", "any"])
_mostly = st.sampled_from([True, True, False])
_numbers = st.sampled_from([0, 0, 0, 0, 0, -1, 1])


@st.composite
def commits(draw: st.DrawFn, thens: st.SearchStrategy[str]) -> tuple[RCommit, int, str]:
    """A commit without a fence, whose number is an offset; which fence, and which answers."""
    then = draw(thens)
    commit = RCommit(
        fence=0,
        number=draw(_numbers),
        then=then,
        value=draw(_values),
        permanent=draw(st.booleans()),
        cards=draw(st.integers(0, 2)),
        calls=tuple(draw(_calls)) if then in ("suspend", "continue") and draw(_mostly) else (),
    )
    return commit, draw(_index), draw(_applied)


class KernelMachine(RuleBasedStateMachine):
    """See the module. Made by `kernel_machine`."""

    factories: tuple[Callable[[], Harness], ...] = ()

    @initialize()
    def begin(self) -> None:
        self.reference = Reference()
        self.sides = [Side(factory()) for factory in self.factories]
        for name in WORKERS:
            self._register(name)

    # Rules

    @rule(specs=st.lists(works(), min_size=1, max_size=2))
    def enqueue(self, specs: list[Work]) -> None:
        self._all(lambda ref: ref.enqueue(specs), lambda side: side.enqueue(specs))

    @rule(request=_requests)
    def claim(self, request: RRequest) -> None:
        self._all(lambda ref: ref.claim(request), lambda side: side.claim(request))

    @precondition(lambda self: self.running())
    @rule(task=_index)
    def claim_again(self, task: int) -> None:
        """A worker that has lost the answer to its claim."""
        running = self.running()
        taken = running[task % len(running)]
        assert taken.worker is not None
        self.claim(RRequest(taken.worker, taken.work.name, 1, taken.token))

    @precondition(lambda self: self.due())
    @rule(
        draft=commits(_thens), token=_tokens, eager=st.none() | _requests, then_claim=st.booleans()
    )
    def work(
        self,
        draft: tuple[RCommit, int, str],
        token: str | None,
        eager: RRequest | None,
        then_claim: bool,
    ) -> None:
        """A live worker takes a task that is there and does one step, as it should."""
        commit, index, applied = draft
        self._step(commit, index, applied, token, eager, then_claim=then_claim)

    @precondition(lambda self: self.due())
    @rule(draft=commits(st.just("suspend")), eager=st.none() | _requests)
    def delegate(self, draft: tuple[RCommit, int, str], eager: RRequest | None) -> None:
        """The same, and it waits for others."""
        commit, index, _ = draft
        self._step(commit, index, "all", None, eager)

    @precondition(lambda self: self.reference.fences)
    @rule(
        drafts=st.lists(commits(_thens), min_size=1, max_size=2),
        eager=st.none() | _requests,
        fail=st.sampled_from([False, False, False, False, True]),
    )
    def commit(
        self, drafts: list[tuple[RCommit, int, str]], eager: RRequest | None, fail: bool
    ) -> None:
        planned = [self._aim(*draft) for draft in drafts]
        if len({each.fence for each in planned}) < len(planned):
            eager = None  # which of two commits of one task gets its callees is nobody's business
        self._commit(planned, eager, fail=fail)

    @precondition(lambda self: self.reference.fences)
    @rule(
        drafts=st.lists(commits(_thens), max_size=2),
        request=_requests,
        fail=st.sampled_from([False, False, False, False, True]),
        times=st.sampled_from([1, 1, 2]),
    )
    def commit_and_claim(
        self, drafts: list[tuple[RCommit, int, str]], request: RRequest, fail: bool, times: int
    ) -> None:
        """Once, or again because the answer was lost."""
        planned = {each.fence: each for each in (self._aim(*draft) for draft in drafts)}
        for _ in range(times):
            self._commit(list(planned.values()), request, then_claim=True, fail=fail)

    @precondition(lambda self: self.due())
    @rule(draft=commits(st.just("suspend")), n=st.integers(1, 2), by=_seconds)
    def delegate_and_go_on(self, draft: tuple[RCommit, int, str], n: int, by: float) -> None:
        """It does itself what it has called, and asks for more time for that."""
        commit, index, _ = draft
        worker = [*WORKERS][index % len(WORKERS)]
        request = RRequest(worker, commit.calls[0].work.name if commit.calls else "a", n, None)
        self._step(commit, index, "all", None, request, then_claim=True)
        for fence in [t.fence for t in self.running() if t.parent is not None]:
            assert fence is not None
            self._extend(fence, by)

    @precondition(lambda self: self.reference.fences)
    @rule(index=_index, by=_seconds)
    def extend(self, index: int, by: float) -> None:
        """A handler's sign of life; the fence may be lost."""
        self._extend(self._some_fence(index), by)

    @precondition(lambda self: self.reference.calls)
    @rule(call=_index, status=st.sampled_from(["ok", "ok", "error"]), body=_values)
    def reply(self, call: int, status: str, body: str | None) -> None:
        label = call % len(self.reference.calls)
        self._all(
            lambda ref: ref.reply(label, status, body), lambda side: side.reply(label, status, body)
        )

    @precondition(lambda self: len(self.reference.tasks) > 3)
    @rule(task=_index, force=st.booleans())
    def stop(self, task: int, force: bool) -> None:
        label = task % len(self.reference.tasks)
        self._all(lambda ref: ref.stop(label, force), lambda side: side.stop(label, force=force))

    @precondition(lambda self: self.running())
    @rule(task=_index, draft=commits(_thens))
    def stop_running(self, task: int, draft: tuple[RCommit, int, str]) -> None:
        """A worker is asked to stop a task, and does one more step."""
        running = self.running()
        asked = running[task % len(running)]
        self.stop(asked.label, force=False)
        if asked.fence is not None:
            self._commit([self._fit(draft[0], asked.fence, ())], None)

    @precondition(lambda self: any(task.dead for task in self.reference.tasks))
    @rule(task=_index)
    def redrive(self, task: int) -> None:
        labels = [t.label for t in self.reference.tasks if t.dead or t.label % 4 == 0]
        label = labels[task % len(labels)]
        self._all(lambda ref: ref.redrive(label), lambda side: side.redrive(label))

    @rule()
    def sweep(self) -> None:
        self._all(lambda ref: ref.sweep(), lambda side: side.sweep())

    @precondition(lambda self: self.running())
    @rule()
    def lose_workers(self) -> None:
        """Nobody renews, and what was in their hands is taken from them."""
        self.advance(LEASE_SECONDS + 5)
        self.sweep()

    @rule(worker=st.sampled_from([*WORKERS]), named=st.sampled_from([1, 1, 2, 0]))
    def renew(self, worker: str, named: int) -> None:
        """Names all fences there are, every other one, or none."""
        held = list(range(1, self.reference.fences + 1, named)) if named else []
        self._all(lambda ref: ref.renew(worker, held), lambda side: side.renew(worker, held))

    @precondition(lambda self: self.running())
    @rule(task=_index)
    def give_back(self, task: int) -> None:
        """A worker learns of a task that it does not know of, and returns it."""
        running = self.running()
        stray = running[task % len(running)]
        assert stray.worker is not None
        assert stray.fence is not None
        self.renew(stray.worker, 0)
        self._commit([self._fit(RCommit(0, 0, "suspend"), stray.fence, ())], None)

    @rule(worker=st.sampled_from([*WORKERS]), end=st.booleans())
    def register_or_shut_down(self, worker: str, end: bool) -> None:
        if end:
            self._all(lambda ref: ref.shut_down(worker), lambda side: side.shut_down(worker))
        else:
            self._register(worker)

    @rule(seconds=st.sampled_from([10.0, 20.0, 50.0]))
    def advance(self, seconds: float) -> None:
        self.reference.now += seconds
        for side in self.sides:
            side.harness.advance(timedelta(seconds=seconds))

    @invariant()
    def stores_are_as_the_reference(self) -> None:
        for side in getattr(self, "sides", []):
            problems = side.problems(self.reference)
            assert not problems, "\n".join(problems)

    # How it is done

    def due(self) -> list[RTask]:
        """What a worker could claim."""
        now = self.reference.now
        return [t for t in self.reference.tasks if t.state == "ready" and t.run_at <= now]

    def running(self) -> list[RTask]:
        return [task for task in self.reference.tasks if task.state == "running"]

    def _fit(self, commit: RCommit, fence: int, applied: tuple[int, ...]) -> RCommit:
        """The commit with a fence, its number counted from the one that comes next."""
        taken = (t.commits for t in self.reference.tasks if t.committed_fence == fence)
        number = max(commit.number + max(taken, default=0), 0)
        return replace(commit, fence=fence, number=number, applied=applied)

    def _step(
        self,
        commit: RCommit,
        index: int,
        applied: str,
        token: str | None,
        eager: RRequest | None,
        *,
        then_claim: bool = False,
    ) -> None:
        worker = [*WORKERS][index % len(WORKERS)]
        if worker not in self.reference.live_workers():
            self._register(worker)
        due = self.due()
        name = due[index % len(due)].work.name
        before = self.reference.fences
        self.claim(RRequest(worker, name, 1, token))
        if self.reference.fences == before:
            return  # the token has taken something before
        fence = self.reference.fences
        fitting = replace(
            commit, fence=fence, number=0, applied=self._answers(fence, applied, index)
        )
        self._commit([fitting], eager, then_claim=then_claim)

    def _commit(
        self,
        planned: list[RCommit],
        request: RRequest | None,
        *,
        then_claim: bool = False,
        fail: bool = False,
    ) -> None:
        def on_reference(ref: Reference) -> object:
            if then_claim and request is not None:
                return _shown_both(ref.commit_and_claim(planned, request))
            return [_shown(answer) for answer in ref.commit(planned, request)]

        def on_store(side: Side) -> object:
            if then_claim and request is not None:
                return _shown_both(side.commit_and_claim(planned, request, fail=fail))
            return [_shown(answer) for answer in side.commit(planned, request, fail=fail)]

        if fail:
            self._fail(on_reference, on_store)
        else:
            # Which of several refusals comes first is the store's own business.
            self._all(on_reference, on_store, same_refusal=len(planned) == 1)

    def _extend(self, fence: int, by: float) -> None:
        self._all(
            lambda ref: None if (time := ref.extend(fence, by)) is None else grains(time),
            lambda side: side.extend(fence, by),
        )

    def _register(self, name: str) -> None:
        handlers = WORKERS[name]
        self._all(
            lambda ref: ref.register(name, handlers, LEASE_SECONDS),
            lambda side: side.register(name, handlers, LEASE_SECONDS),
        )

    def _all(
        self,
        on_reference: Callable[[Reference], Answer],
        on_store: Callable[[Side], Answer],
        *,
        same_refusal: bool = True,
    ) -> None:
        expected = outcome_of(lambda: on_reference(self.reference))
        for side in self.sides:
            seen = outcome_of(lambda side=side: on_store(side))  # type: ignore[misc]
            if isinstance(expected, str) and not same_refusal:
                assert isinstance(seen, str), f"expected {expected}, got {seen}"
            else:
                assert seen == expected

    def _fail(
        self, on_reference: Callable[[Reference], object], on_store: Callable[[Side], object]
    ) -> None:
        """Writes that raise: nothing may have happened, whatever the commits were."""
        answers = [outcome_of(lambda side=side: on_store(side)) for side in self.sides]  # type: ignore[misc]
        if any(not isinstance(answer, str) for answer in answers):
            # Only commits that were all taken before succeed without their writes.
            assert answers == [on_reference(self.reference)] * len(answers)

    def _aim(self, commit: RCommit, index: int, applied: str) -> RCommit:
        """Gives a commit a fence, most often one that is held, and a number that fits it."""
        fence = self._some_fence(index)
        return self._fit(commit, fence, self._answers(fence, applied, index))

    def _some_fence(self, index: int) -> int:
        """Most often one that is held."""
        held = [task.fence for task in self.reference.tasks if task.fence is not None]
        return held[index % len(held)] if held and index % 4 else index % self.reference.fences + 1

    def _answers(self, fence: int, which: str, index: int) -> tuple[int, ...]:
        calls = self.reference.calls
        if which == "any" and calls:
            return (index % len(calls),)
        owner = [task.label for task in self.reference.tasks if task.fence == fence]
        untaken = [call.label for call in self.reference.untaken(owner[0])] if owner else []
        return tuple(untaken if which == "all" else untaken[:1] if which == "first" else ())


def kernel_machine(*factories: Callable[[], Harness]) -> type[KernelMachine]:
    """A machine that plays against one fresh store of each kind, all at once."""
    return type("KernelMachine", (KernelMachine,), {"factories": factories})


def _shown(answer: RCommitted) -> tuple[object, ...]:
    """What a commit's answer shows to its caller."""
    return answer.task, answer.calls, answer.eager


def _shown_both(answer: tuple[list[RCommitted], list[RClaim]]) -> object:
    committed, claims = answer
    return [_shown(each) for each in committed], claims
