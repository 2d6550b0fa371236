from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.kernel.postgres.databases import server_is_there, url_of

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(shutil.which("pgbench") is None, reason="there is no pgbench")
@pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")
def test_a_quick_run_compares_both_sides_and_leaves_no_database() -> None:
    before = _bench_databases()
    command = [sys.executable, "-m", "bench.kernel", "--quick", "--server", url_of("postgres")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert set(figures) == {"single_ratio", "batch_ratio", "rounds", "seconds", "load", "cells"}
    assert {(cell["clients"], cell["batch"]) for cell in figures["cells"]} == {(16, 1), (16, 100)}
    for cell in figures["cells"]:
        assert cell["bare"]["median"] > 0
        assert cell["ours"]["median"] > 0
    assert figures["single_ratio"] > 0
    assert figures["batch_ratio"] > 0
    assert _bench_databases() <= before


def _bench_databases() -> set[str]:
    statement = "select datname from pg_database where datname like 'afl_bench_%'"
    with psycopg.connect(url_of("postgres")) as connection:
        return {row[0] for row in connection.execute(statement)}
