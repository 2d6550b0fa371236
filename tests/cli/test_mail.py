"""`afl mail` and `afl agents registry`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import redis
from click.testing import Result
from redis.asyncio import Redis

from afl.app.mailing import KEY_PREFIX
from afl.cli import exit_codes
from afl.messaging.coordinator import MessageCoordinator
from afl.messaging.models import AgentId, FailureType
from afl.messaging.redis_coordinator import RedisMessageCoordinator
from afl.messaging.redis_registry import RedisAgentRegistry
from afl.messaging.registry import Agent, Capability
from tests.cli.deployed import fresh_database
from tests.cli.runner import run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import server_is_there
from tests.messaging.redis_servers import cluster, needs_redis_server, server

T = TypeVar("T")

needs_postgres = pytest.mark.skipif(
    not server_is_there(), reason="there is no PostgreSQL to test with"
)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with server(tmp_path_factory.mktemp("redis")) as started:
        yield started.port


@pytest.fixture
def url(port: int) -> Iterator[str]:
    yield f"redis://127.0.0.1:{port}"
    with redis.Redis(port=port) as client:
        client.flushall()


def afl(url: str, *args: str, input: str | None = None) -> Result:
    """A command with this Redis."""
    return run(*args, input=input, variables={"AFL_REDIS_URL": url})


def on(port: int, work: Callable[[MessageCoordinator], Awaitable[T]]) -> T:
    async def do() -> T:
        async with Redis(port=port) as client:
            return await work(RedisMessageCoordinator(client, KEY_PREFIX))

    return asyncio.run(do())


def fail_all(port: int, agent: str) -> None:
    """Whatever is in a mailbox becomes a dead letter."""

    async def work(mailboxes: MessageCoordinator) -> None:
        me = AgentId.parse(agent)
        for received in await mailboxes.receive_batch(me, 100):
            await mailboxes.nack(me, received.token, FailureType.PERMANENT, "no such\nproduct")

    on(port, work)


@needs_redis_server
class TestMail:
    def test_a_message_is_sent_with_all_that_it_has(self, url: str, port: int) -> None:
        options = "--from buyer:1 --type request --priority high --id offer-1 --ttl 1h"
        more = "--reply-to buyer:answers --correlation asked-1 --inputs - --json"
        fields = ("-i", "price=80", "-i", 'tags=["x"]', "-i", "note=by Monday")
        given = '{"price": 1, "what": "a lamp"}'
        words = (*fields, *options.split(), *more.split())
        result = afl(url, "mail", "send", "seller", *words, input=given)
        assert result.exit_code == exit_codes.OK, result.stderr
        validate(result.stdout, "message")
        received = on(port, lambda mailboxes: mailboxes.receive(AgentId(type="seller")))
        assert received is not None
        message = received.queue_message.message
        assert message.payload == {
            "price": 80,
            "what": "a lamp",
            "tags": ["x"],
            "note": "by Monday",
        }
        assert (str(message.sender), str(message.reply_to)) == ("buyer:1", "buyer:answers")
        assert (message.message_type, message.priority.name) == ("request", "HIGH")
        assert (message.correlation_id, message.ttl_seconds) == ("asked-1", 3600.0)
        assert (result.stderr, message.message_id) == ("", "offer-1")

    def test_a_message_is_printed_by_its_id_and_looked_at(self, url: str) -> None:
        sent = afl(url, "mail", "send", "seller:2", "-i", "price=80")
        assert sent.exit_code == exit_codes.OK, sent.stderr
        assert "`afl mail peek seller:2` shows what waits there" in sent.stderr
        afl(url, "mail", "send", "seller:2", "--delay", "1h")
        shown = afl(url, "mail", "peek", "seller:2").stdout.splitlines()
        assert [line.split() for line in shown[:4]] == [
            ["sent", "2"],
            ["ready", "1"],
            ["delayed", "1"],
            ["reserved", "0"],
        ]
        assert shown[7].split() == ["MESSAGE", "TYPE", "PRIORITY", "FROM", "PAYLOAD"]
        (row,) = shown[8:]
        assert row.split()[:3] == [sent.stdout.strip(), "event", "normal"]
        assert "  person:" in row
        assert row.endswith('{"price": 80}')
        told = afl(url, "mail", "peek", "seller:2", "--json")
        validate(told.stdout, "mailbox")
        assert json.loads(told.stdout)["counts"]["delayed"] == 1

    def test_one_id_is_sent_once(self, url: str) -> None:
        for _ in range(2):
            assert afl(url, "mail", "send", "seller", "--id", "offer-1").stdout == "offer-1\n"
        told = json.loads(afl(url, "mail", "peek", "seller", "--json").stdout)
        assert [each["message_id"] for each in told["messages"]] == ["offer-1"]

    def test_dead_letters_are_listed_with_reason_and_attempts(self, url: str, port: int) -> None:
        afl(url, "mail", "send", "seller", "--id", "offer-1", "-i", "price=80", "--from", "buyer")
        afl(url, "mail", "send", "seller", "--id", "offer-2")
        fail_all(port, "seller")
        listed = afl(url, "mail", "dlq", "seller", "--limit", "1")
        header, row = (line.split() for line in listed.stdout.splitlines())
        assert header == ["MESSAGE", "REASON", "ATTEMPTS", "AGE", "FROM", "ERROR", "PAYLOAD"]
        assert row[:3] + row[4:7] == ["offer-1", "permanent", "1", "buyer:default", "no", "such"]
        assert row[7:] == ['{"price":', "80}"]
        assert "`--limit 2` shows more of them" in listed.stderr
        assert "`afl mail redrive seller:default offer-1` puts it" in listed.stderr
        assert "`afl mail dlq seller:default`" in afl(url, "mail", "peek", "seller").stderr
        told = afl(url, "mail", "dlq", "seller", "--json")
        validate(told.stdout, "letters")
        letters = json.loads(told.stdout)["letters"]
        assert [each["last_error"] for each in letters] == ["no such\nproduct"] * 2

    def test_what_nobody_received_in_time_is_a_dead_letter(self, url: str) -> None:
        afl(url, "mail", "send", "seller", "--id", "offer-1", "--ttl", "1ms")
        letters = json.loads(afl(url, "mail", "dlq", "seller", "--json").stdout)["letters"]
        assert [(each["reason"], each["attempts"]) for each in letters] == [("expired", 0)]

    def test_dead_letters_are_driven_again(self, url: str, port: int) -> None:
        for number in range(3):
            afl(url, "mail", "send", "seller", "--id", f"offer-{number}")
        fail_all(port, "seller")
        one = afl(url, "mail", "redrive", "seller", "offer-1", "offer-9", "--json")
        assert one.exit_code == exit_codes.FAILED
        validate(one.stdout, "changes")
        driven, unknown = json.loads(one.stdout)["changes"]
        assert (driven["id"], driven["state"], driven["error"]) == ("offer-1", "ready", None)
        assert "no dead letter offer-9 in the mailbox of seller:default" in unknown["error"]
        dry = afl(url, "mail", "redrive", "seller", "--all", "--dry-run")
        assert dry.stdout == "offer-0  dead\noffer-2  dead\n"
        rest = afl(url, "mail", "redrive", "seller", "--all")
        assert rest.stdout == "offer-0  ready\noffer-2  ready\n"
        assert "2 messages driven again\n" in rest.stderr
        told = json.loads(afl(url, "mail", "peek", "seller", "--json").stdout)
        assert (told["counts"]["ready"], told["counts"]["dead"]) == (3, 0)
        none = afl(url, "mail", "dlq", "seller")
        assert (none.stdout, none.exit_code) == ("", exit_codes.OK)
        assert "has no dead letters" in none.stderr

    def test_dead_letters_are_removed_for_good(self, url: str, port: int) -> None:
        for number in range(3):
            afl(url, "mail", "send", "seller", "--id", f"offer-{number}")
        fail_all(port, "seller")
        one = afl(url, "mail", "purge", "seller", "offer-1")
        assert (one.stdout, one.exit_code) == ("offer-1  purged\n", exit_codes.OK)
        assert afl(url, "mail", "purge", "seller", "--all", "--dry-run").exit_code == exit_codes.OK
        rest = afl(url, "mail", "purge", "seller", "--all", "--json")
        validate(rest.stdout, "changes")
        told = json.loads(afl(url, "mail", "peek", "seller", "--json").stdout)
        assert (told["counts"]["dead"], told["counts"]["purged"]) == (0, 3)

    @pytest.mark.parametrize("verb", ["redrive", "purge"])
    def test_it_has_to_be_clear_which_letters_are_meant(self, url: str, verb: str) -> None:
        for more in ((), ("x", "--all")):
            result = afl(url, "mail", verb, "seller", *more)
            assert result.exit_code == exit_codes.USAGE
            assert "name the messages, or use --all" in result.stderr

    def test_a_full_mailbox_is_told(self, url: str, port: int) -> None:
        afl(url, "mail", "send", "seller", "--id", "offer-1")
        fail_all(port, "seller")
        on(port, lambda mailboxes: mailboxes.configure(queue_size=1))
        afl(url, "mail", "send", "seller")
        full = afl(url, "mail", "send", "seller")
        assert full.exit_code == exit_codes.FAILED
        assert "the mailbox of seller:default is full" in full.stderr
        again = afl(url, "mail", "redrive", "seller", "--all")
        assert again.exit_code == exit_codes.FAILED
        assert "offer-1 was not moved: the mailbox of seller:default is full" in again.stderr

    @pytest.mark.parametrize(
        ("args", "code", "words"),
        [
            (("send", "a b"), exit_codes.USAGE, "'a b' is not an address; write TYPE or"),
            (("peek", "a:b:c"), exit_codes.USAGE, "'a:b:c' is not an address"),
            (("send", "a", "--reply-to", "{}"), exit_codes.USAGE, "'{}' is not an address"),
            (("send", "a", "--id", "abc"), exit_codes.USAGE, "--id: String should have"),
            (("send", "a", "--ttl", "0s"), exit_codes.USAGE, "--ttl: Input should be greater"),
            (("send", "a", "--inputs", "none"), exit_codes.UNREADABLE, "cannot read none"),
            (("send", "a", "-i", "x"), exit_codes.USAGE, "'x' is not of the form NAME=VALUE"),
        ],
        ids=str,
    )  # fmt: skip
    def test_what_makes_no_sense_is_refused(
        self, url: str, args: tuple[str, ...], code: int, words: str
    ) -> None:
        result = afl(url, "mail", *args)
        assert (result.exit_code, result.stdout) == (code, "")
        assert words in result.stderr


class TestPlaces:
    def test_without_a_place_it_says_what_to_set(self) -> None:
        result = run("mail", "peek", "seller")
        assert result.exit_code == exit_codes.USAGE
        assert "there is no place for mail: set AFL_REDIS_URL" in result.stderr
        registry = run("agents", "registry")
        assert registry.exit_code == exit_codes.USAGE
        assert "There is no Redis. Set AFL_REDIS_URL" in registry.stderr

    @pytest.mark.parametrize(
        ("url", "words"),
        [
            ("redis://127.0.0.1:1", "The Redis of AFL_REDIS_URL does not answer"),
            ("somewhere", "AFL_REDIS_URL is not the URL of a Redis"),
        ],
    )
    @pytest.mark.parametrize("args", [("mail", "send", "seller"), ("agents", "registry")], ids=str)
    def test_a_redis_that_is_not_there_is_told(
        self, url: str, words: str, args: tuple[str, ...]
    ) -> None:
        result = afl(url, *args)
        assert result.exit_code == exit_codes.USAGE
        assert words in result.stderr

    @needs_postgres
    def test_without_redis_mailboxes_are_in_the_database(self) -> None:
        with fresh_database() as database:
            sent = run("mail", "send", "seller", "--id", "offer-1", "--database", database)
            assert (sent.stdout, sent.exit_code) == ("offer-1\n", exit_codes.OK), sent.stderr
            told = run("mail", "peek", "seller", "--json", "--database", database)
            validate(told.stdout, "mailbox")
            assert json.loads(told.stdout)["messages"][0]["message_id"] == "offer-1"
            run("mail", "send", "seller", "--id", "late-1", "--ttl", "1ms", "--database", database)
            dead = run("mail", "dlq", "seller", "--json", "--database", database)
            validate(dead.stdout, "letters")
            driven = run("mail", "redrive", "seller", "--all", "--database", database)
            assert driven.stdout == "late-1  ready\n"

    @needs_redis_server
    def test_a_cluster_is_found_behind_one_of_its_servers(self, tmp_path: Path) -> None:
        with cluster(tmp_path) as port:
            url = f"redis://127.0.0.1:{port}"
            for agent in ("buyer", "seller", "judge"):
                sent = afl(url, "mail", "send", agent)
                assert sent.exit_code == exit_codes.OK, sent.stderr
                told = json.loads(afl(url, "mail", "peek", agent, "--json").stdout)
                assert told["counts"]["ready"] == 1
            listed = afl(url, "agents", "registry", "--json")
            assert json.loads(listed.stdout)["agents"] == []


@needs_redis_server
class TestRegistry:
    @pytest.fixture(autouse=True)
    def registered(self, url: str, port: int) -> Iterator[None]:
        """Two that are alive, and one that is not."""
        with redis.Redis(port=port) as client:
            living = RedisAgentRegistry(client, KEY_PREFIX)
            brief = RedisAgentRegistry(
                client, KEY_PREFIX, heartbeat_ttl_s=0.002, heartbeat_interval_s=0.001
            )
            _register(
                living, "reviewer:1", Capability(name="review", version="1.4.0", tags=("py",))
            )
            _register(living, "reviewer:2", Capability(name="review", version="2.0.0"))
            _register(brief, "writer")
            yield

    def test_agents_are_listed_with_what_they_can_do(self, url: str) -> None:
        # the third has two milliseconds to die
        listed = afl(url, "agents", "registry")
        while "writer:default  Writer  alive" in listed.stdout:
            listed = afl(url, "agents", "registry")
        rows = [line.split() for line in listed.stdout.splitlines()]
        assert rows[0] == ["AGENT", "NAME", "LIFE", "STATUS", "SEEN", "CAPABILITIES"]
        assert [row[:4] for row in rows[1:]] == [
            ["reviewer:1", "Reviewer", "alive", "idle"],
            ["reviewer:2", "Reviewer", "alive", "idle"],
            ["writer:default", "Writer", "dead", "idle"],
        ]
        assert [row[5:] for row in rows[1:]] == [["review", "1.4.0"], ["review", "2.0.0"], ["-"]]
        assert "`afl mail send reviewer:1 -i NAME=VALUE` sends one a message" in listed.stderr

    @pytest.mark.parametrize(
        ("options", "agents"),
        [
            (("--type", "writer"), ["writer:default"]),
            (("--capability", "review"), ["reviewer:1", "reviewer:2"]),
            (("--capability", "review", "--versions", ">=1.2,<2"), ["reviewer:1"]),
            (("--capability", "review", "--versions", "^2"), ["reviewer:2"]),
            (("--capability", "review", "--tag", "py"), ["reviewer:1"]),
            (("--capability", "review", "--type", "writer"), []),
            (("--alive", "--type", "reviewer"), ["reviewer:1", "reviewer:2"]),
        ],
        ids=str,
    )
    def test_agents_are_found(self, url: str, options: tuple[str, ...], agents: list[str]) -> None:
        told = afl(url, "agents", "registry", *options, "--json")
        assert told.exit_code == exit_codes.OK, told.stderr
        validate(told.stdout, "registry")
        assert [each["agent"] for each in json.loads(told.stdout)["agents"]] == agents

    def test_what_is_asked_has_to_make_sense(self, url: str) -> None:
        wrong = afl(url, "agents", "registry", "--capability", "review", "--versions", "new")
        assert wrong.exit_code == exit_codes.USAGE
        assert "'new' is not a range of versions; write such as" in wrong.stderr
        loose = afl(url, "agents", "registry", "--versions", "^1")
        assert loose.exit_code == exit_codes.USAGE
        none = afl(url, "agents", "registry", "--type", "nobody")
        assert "no such agent has registered itself" in none.stderr


def _register(registry: RedisAgentRegistry, address: str, *capabilities: Capability) -> None:
    agent_id = AgentId.parse(address)
    name = agent_id.type.capitalize()
    registry.register(Agent(name=name, agent_id=agent_id, capabilities=capabilities))
