from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.kernel.memory import MemoryStore
from afl.kernel.model import Card, CardSpec, Json
from afl.kernel.requests import json_copy
from afl.kernel.rules import card_hash
from afl.testing.clock import SequentialIds, VirtualClock
from afl.turns.cards import Value, find, is_of_turn, read, storable, write
from afl.turns.contents import json_text
from afl.turns.journal import (
    Context,
    Deferred,
    Note,
    Problem,
    ResultStatus,
    Thought,
    ToolCall,
    ToolResult,
)
from afl.turns.model import (
    After,
    Allowance,
    Brief,
    Deliverable,
    Ending,
    Limits,
    Part,
    Price,
    Reply,
    Text,
    Thinking,
    Tool,
    ToolKind,
    ToolUse,
    Usage,
)

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
counts = st.integers(0, 2**40)
jsons: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
maps = st.dictionaries(texts, jsons, max_size=4)
money = st.decimals(0, 1000, places=6)

tools = st.builds(
    Tool,
    name=texts,
    description=texts,
    schema=maps,
    kind=st.sampled_from(ToolKind),
    target=texts,
    effect=texts,
    needs_approval=st.booleans(),
    timeout=st.timedeltas(timedelta(0), timedelta(days=99)),
    after=st.sampled_from(After),
    pin=st.none() | texts,
    untrusted=st.booleans(),
)
allowances = st.builds(
    Allowance,
    usd=st.none() | money,
    tokens=st.none() | counts,
    model_calls=st.none() | counts,
    tool_calls=st.none() | counts,
)
briefs = st.builds(
    Brief,
    system=texts,
    template=texts,
    models=st.lists(texts, max_size=3).map(tuple),
    tools=st.lists(tools, max_size=3).map(tuple),
    returns=st.none() | maps,
    limits=st.builds(Limits, counts, counts, counts, counts, counts, counts),
    allowance=allowances,
    max_tokens=counts,
    temperature=st.none() | st.floats(0, 2),
)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, texts),
    st.builds(Thinking, texts, jsons),
    st.builds(ToolUse, texts, texts, texts),
)
replies = st.builds(
    Reply,
    st.lists(parts, max_size=4).map(tuple),
    texts,
    texts,
    st.builds(Usage, counts, counts, counts, counts),
    st.none() | texts,
)
values = st.one_of(
    briefs,
    st.builds(Context, st.lists(st.tuples(texts, counts), max_size=3).map(tuple)),
    st.builds(Thought, counts, replies, st.builds(Price, money, texts), texts),
    st.builds(ToolCall, counts, counts, texts, texts, texts, texts),
    st.builds(
        ToolResult,
        counts,
        counts,
        st.none() | texts,
        texts,
        texts,
        st.sampled_from(ResultStatus),
        texts,
        st.booleans(),
    ),
    st.builds(Note, texts, st.booleans()),
    st.builds(Deferred, counts, texts, st.none() | st.floats(0, 1e6), texts, texts),
    st.builds(Problem, texts, texts),
    st.builds(Deliverable, st.sampled_from(Ending), st.booleans(), maps, texts),
)


@given(values)
def test_every_value_is_read_as_it_was_written(value: Value) -> None:
    card = write(value)
    assert read(card) == value
    assert json_copy(card.content) == card.content, "a store takes it"


def test_a_brief_keeps_the_order_of_the_keys_of_its_schemas() -> None:
    schema: dict[str, Json] = {"type": "object", "properties": {"why": {}, "answer": {}}}
    tool = Tool("t", "", schema, ToolKind.MCP, "s/t")
    again = read(write(Brief("", "", (), (tool,), returns=schema)))
    assert isinstance(again, Brief)
    assert json_text(again.returns) == json_text(schema)
    assert json_text(again.tools[0].schema) == json_text(schema)


def test_equal_briefs_are_one_card() -> None:
    brief = Brief("s", "t", ("m",), allowance=Allowance(Decimal("1.50")))
    assert write(brief) == write(Brief("s", "t", ("m",), allowance=Allowance(Decimal("1.50"))))


def test_a_thought_has_all_that_an_account_needs_at_its_top() -> None:
    reply = Reply((Text("hi"), ToolUse("i", "add", "{}")), "tool_call", "m", Usage(1, 2, 3, 4), "p")
    assert write(Thought(0, reply, Price(Decimal("0.10"), "v1"), "sha256:00")).content == {
        "number": 0,
        "parts": [{"text": "hi"}, {"tool": "add", "id": "i", "arguments": "{}"}],
        "finish": "tool_call",
        "model": "m",
        "usage": {"input": 1, "output": 2, "cache_read": 3, "cache_write": 4},
        "provider_id": "p",
        "price": {"usd": "0.10", "version": "v1"},
        "request": "sha256:00",
    }


@given(
    st.recursive(st.text() | st.floats(), lambda of: st.lists(of) | st.dictionaries(st.text(), of))
)
def test_whatever_is_written_can_be_stored(value: Json) -> None:
    json_copy(storable(value))


def test_only_what_cannot_be_stored_is_replaced() -> None:
    assert storable({"a\0": ["é\ud800x", 1, float("nan")]}) == {"a�": ["é�x", 1, None]}


def test_cards_of_others_are_left_alone() -> None:
    theirs = CardSpec("note", {"text": "hello"})
    assert read(theirs) is None
    assert not is_of_turn(theirs)
    assert find([theirs, write(Note("hi"))], Note) == [Note("hi")]


def test_a_card_that_no_turn_has_written_is_not_read_as_one() -> None:
    with pytest.raises(KeyError):
        read(CardSpec("agent.note", {}))
    with pytest.raises(TypeError):
        read(CardSpec("agent.note", "text"))


def test_a_card_comes_back_from_a_store_as_it_was() -> None:
    store = MemoryStore(VirtualClock(), SequentialIds())
    spec = write(Deliverable(Ending.DONE, False, {"a": [1, 2.5, None]}))
    card = Card(card_hash(spec.kind, spec.content), spec.kind, spec.content)
    store.put_cards([card])
    assert [read(each) for each in store.get_cards([card.hash])] == [read(spec)]
