"""`afl hooks`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from afl.cli import exit_codes
from tests.cli.deployed import deployed_database
from tests.cli.runner import run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import server_is_there

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with deployed_database() as url:
        yield url


def test_a_hook_is_made_listed_and_deleted(url: str) -> None:
    empty = run("hooks", "list", "--database", url)
    assert "`afl hooks create NAME WORKFLOW` makes one" in empty.stderr
    made = run("hooks", "create", "orders", "demo.Hello", "--json", "--database", url)
    assert made.exit_code == exit_codes.OK, made.stderr
    validate(made.stdout, "hooks")
    told = json.loads(made.stdout)
    assert told["hook"]["path"] == "/api/v1/hooks/orders/call"
    taken = run("hooks", "create", "orders", "demo.Hello", "--database", url)
    assert taken.exit_code == exit_codes.FAILED
    assert "there is a web hook orders already" in taken.stderr
    listed = run("hooks", "list", "--json", "--database", url)
    validate(listed.stdout, "hooks")
    assert told["secret"] not in listed.stdout
    gone = run("hooks", "delete", "orders", "--json", "--database", url)
    validate(gone.stdout, "hooks")
    again = run("hooks", "delete", "orders", "--database", url)
    assert again.exit_code == exit_codes.UNREADABLE
    assert "`afl hooks list` shows those there are" in again.stderr
