"""A message takes the trace of its sender along, wherever the mailbox is."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, Tracer, get_current_span

from afl.kernel.port import Transaction
from afl.kernel.postgres.store import PostgresStore
from afl.messaging.letters import read, written
from afl.messaging.models import AgentId, AgentMessage, MessageType
from afl.messaging.postgres_coordinator import PostgresMessageCoordinator
from afl.messaging.tracing import context_of
from afl.testing.mail_conformance.harness import Harness
from tests.kernel.postgres.databases import server_is_there
from tests.messaging.postgres_harness import PostgresMailHarness, Server, mail_database
from tests.messaging.redis_mailboxes import RedisHarness, redis_is_there
from tests.messaging.test_memory_coordinator import MemoryHarness

BUYER, SELLER = AgentId(type="buyer"), AgentId(type="seller")


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter: InMemorySpanExporter) -> Iterator[Tracer]:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider.get_tracer("test")
    provider.shutdown()


@pytest.fixture(params=["memory", "redis", "postgres"])
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    if request.param == "memory":
        made: Harness = MemoryHarness()
        yield made
        made.close()
    elif request.param == "redis":
        if not redis_is_there():
            pytest.skip("there is no Redis to test with")
        made = RedisHarness()
        yield made
        made.close()
    else:
        if not server_is_there():
            pytest.skip("there is no PostgreSQL to test with")
        with mail_database() as url:
            server = Server(url)
            made = PostgresMailHarness(server)
            yield made
            made.close()
            server.database.close()


def offer(**fields: object) -> AgentMessage:
    return AgentMessage.model_validate(
        {
            "message_id": "offer-1",
            "sender": BUYER,
            "recipient": SELLER,
            "message_type": MessageType.REQUEST,
            **fields,
        }
    )


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def test_the_span_of_the_consumer_is_a_child_of_the_senders(
    harness: Harness, tracer: Tracer, exporter: InMemorySpanExporter
) -> None:
    async def work() -> AgentMessage:
        mailboxes = harness.coordinator()
        with tracer.start_as_current_span("send"):
            await mailboxes.send_message(BUYER, SELLER, offer(headers={"tenant": "a"}))
        received = await mailboxes.receive(SELLER)
        assert received is not None
        message = received.queue_message.message
        with tracer.start_as_current_span("work", context=context_of(message)):
            pass
        return message

    message = harness.run(work())
    assert message.headers.keys() == {"tenant", "traceparent"}
    spans = by_name(exporter)
    sent, done = spans["send"].context, spans["work"]
    assert sent is not None
    assert done.parent is not None
    assert (done.parent.trace_id, done.parent.span_id) == (sent.trace_id, sent.span_id)
    assert done.parent.is_remote


def test_a_broadcast_takes_it_along_too(harness: Harness, tracer: Tracer) -> None:
    async def work() -> list[AgentMessage]:
        mailboxes = harness.coordinator()
        with tracer.start_as_current_span("tell all"):
            await mailboxes.broadcast_message(BUYER, offer(), [SELLER, BUYER])
        return [*await mailboxes.peek(SELLER), *await mailboxes.peek(BUYER)]

    contexts = [context_of(each) for each in harness.run(work())]
    assert len({get_current_span(each).get_span_context().span_id for each in contexts}) == 1
    assert None not in contexts


@pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")
def test_a_message_of_a_commit_takes_it_along(tracer: Tracer) -> None:
    with mail_database() as url, PostgresStore.connect(url, max_size=4) as store:
        mailboxes = PostgresMessageCoordinator(store.database)

        def write(transaction: Transaction) -> None:
            with tracer.start_as_current_span("write"):
                mailboxes.send_in(transaction, offer())

        store.commit((), writes=write)
        (message,) = asyncio.run(mailboxes.peek(SELLER))
    assert context_of(message) is not None


def test_the_context_can_be_a_link(tracer: Tracer, exporter: InMemorySpanExporter) -> None:
    with tracer.start_as_current_span("send"):
        message = read(written(offer()))
    sender = get_current_span(context_of(message)).get_span_context()
    with tracer.start_as_current_span("batch", links=[Link(sender)]):
        pass
    spans = by_name(exporter)
    assert spans["batch"].parent is None
    sent, (link,) = spans["send"].context, spans["batch"].links
    assert sent is not None
    assert (link.context.trace_id, link.context.span_id) == (sent.trace_id, sent.span_id)


def test_a_message_keeps_the_context_that_it_has(tracer: Tracer) -> None:
    parent = f"00-{'a' * 32}-{'b' * 16}-01"
    with tracer.start_as_current_span("forward"):
        forwarded = read(written(offer(headers={"traceparent": parent})))
    assert forwarded.headers == {"traceparent": parent}


def test_without_a_span_there_is_nothing_to_take_along() -> None:
    message = read(written(offer()))
    assert message.headers == {}
    assert context_of(message) is None


WITHOUT = """
import sys
sys.modules["opentelemetry"] = None  # as if it were not installed
from afl.kernel.port import Transaction
from afl.kernel.postgres.store import PostgresStore
from afl.messaging.letters import read, written
from afl.messaging.models import AgentId, AgentMessage
from afl.messaging.postgres_coordinator import PostgresMessageCoordinator
from afl.messaging.tracing import context_of
me = AgentId(type="me")
message = AgentMessage(message_id="offer-1", sender=me, recipient=me, message_type="event",
                       headers={"traceparent": "x"})
assert read(written(message)) == message
assert context_of(message) is None
"""
UNUSED = """
import sys
from afl.kernel.port import Transaction
from afl.kernel.postgres.store import PostgresStore
from afl.messaging.letters import read, written
from afl.messaging.models import AgentId, AgentMessage
me = AgentId(type="me")
written(AgentMessage(message_id="offer-1", sender=me, recipient=me, message_type="event"))
assert not any(name.startswith("opentelemetry") for name in sys.modules)
"""


@pytest.mark.parametrize("code", [WITHOUT, UNUSED], ids=["not installed", "not in use"])
def test_nobody_needs_opentelemetry(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
