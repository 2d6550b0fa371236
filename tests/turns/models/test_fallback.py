"""Asking one model after another."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from afl.turns.errors import ModelBusy, ModelFailure, ModelRefused, ProviderDown
from afl.turns.model import ModelRequest, Reply
from afl.turns.models.fallback import ask_first
from afl.turns.models.registry import Registry
from afl.turns.models.scripted import Answer, ScriptedModel, Step
from afl.turns.ports import Listener
from tests.turns.models.asking import HELLO


def first(**steps: Step) -> Reply:
    models = {name: ScriptedModel([step]) for name, step in steps.items()}
    names = [f"scripted:{name}" for name in steps]
    return asyncio.run(ask_first(Registry(scripted=models), names, HELLO))


def failure(**steps: Step) -> ModelFailure:
    with pytest.raises(ModelFailure) as caught:
        first(**steps)
    return caught.value


def test_the_first_that_answers_is_the_one() -> None:
    reply = first(a=ModelBusy("later"), b=ModelRefused("never"), c=Answer("Hi."), d=Answer("Ho."))
    assert (reply.text, reply.model) == ("Hi.", "scripted:c")


def test_no_other_is_asked_when_one_has_answered() -> None:
    second = ScriptedModel([Answer("Ho.")])
    registry = Registry(scripted={"a": ScriptedModel([Answer("Hi.")]), "b": second})
    asyncio.run(ask_first(registry, ["scripted:a", "scripted:b"], HELLO))
    assert second.requests == []


def test_the_last_refusal_is_raised_when_all_refuse() -> None:
    error = failure(a=ModelRefused("one"), b=ModelRefused("two"))
    assert isinstance(error, ModelRefused)
    assert error.message == "two"


def test_who_listens_is_told_when_another_begins() -> None:
    heard: list[tuple[str, str]] = []
    models = {"a": ScriptedModel([ModelBusy("later")]), "b": ScriptedModel([Answer("Hi.")])}
    names = ["scripted:a", "scripted:b"]
    asked = ask_first(Registry(scripted=models), names, HELLO, lambda *each: heard.append(each))
    asyncio.run(asked)
    assert heard == [("again", ""), ("text", "Hi.")]


def test_busy_beats_refused() -> None:
    error = failure(a=ModelBusy("later"), b=ModelRefused("never"))
    assert isinstance(error, ModelBusy)
    assert error.message == "later"


class Down:
    """Models whose provider is down, but for one that is busy."""

    def find(self, name: str) -> Down:
        self.name = name
        return self

    async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
        if self.name == "busy":
            raise ModelBusy("busy")
        raise ProviderDown(self.name, breaker=self.name, after=timedelta(seconds=len(self.name)))


def test_providers_that_are_down_are_told_apart_from_models_that_were_asked() -> None:
    with pytest.raises(ModelFailure) as caught:
        asyncio.run(ask_first(Down(), ["first", "two"], HELLO))
    assert isinstance(caught.value, ProviderDown)
    assert (caught.value.breaker, caught.value.after) == ("two", timedelta(seconds=3))
    with pytest.raises(ModelFailure) as caught:
        asyncio.run(ask_first(Down(), ["first", "busy"], HELLO))
    assert not isinstance(caught.value, ProviderDown)


def test_the_shortest_wait_is_enough() -> None:
    soon, late = timedelta(seconds=2), timedelta(seconds=60)
    error = failure(a=ModelBusy("x", after=soon), b=ModelBusy("y", after=late), c=ModelBusy("z"))
    assert isinstance(error, ModelBusy)
    assert error.after == soon


def test_a_model_that_is_not_there_is_passed_over() -> None:
    registry = Registry(scripted={"a": ScriptedModel([Answer("Hi.")])})
    reply = asyncio.run(ask_first(registry, ["nobody:x", "scripted:a"], HELLO))
    assert reply.text == "Hi."


def test_nobody_to_ask_is_refused() -> None:
    with pytest.raises(ModelRefused, match="no model to ask"):
        asyncio.run(ask_first(Registry(), [], HELLO))
