"""Peers are measured by what is really done."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench import kernel_peers
from bench.kernel_peers import Peer, PeerFailed


def pretended(manner: str) -> Peer:
    return Peer("pretended", Path(sys.executable), "tests.bench.pretended_peer", manner)


def test_the_rate_is_jobs_done_by_the_time_it_took() -> None:
    peer = pretended("honest")
    peer.install()
    rate = peer.tasks_per_second(clients=1, batch=1, warm_up=0, seconds=1)
    # ten jobs in one second, and however long a loaded machine takes to notice
    assert 2 < rate <= 10


@pytest.mark.parametrize(
    ("manner", "complaint"),
    [("lossy", "of 10 jobs only 9 were done"), ("doubling", "of 10 jobs 11 were done")],
)
def test_a_peer_that_loses_or_doubles_jobs_has_no_rate(
    manner: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_peers, "_DRAIN_SECONDS", 0.1)
    with pytest.raises(PeerFailed, match=complaint):
        pretended(manner).tasks_per_second(clients=1, batch=1, warm_up=0, seconds=1)


def test_a_peer_that_does_not_start_has_no_rate() -> None:
    with pytest.raises(PeerFailed, match="cannot use failing"):
        pretended("failing").install()
    with pytest.raises(PeerFailed, match="ended with 3"):
        pretended("failing").tasks_per_second(clients=1, batch=1, warm_up=0, seconds=1)


def test_an_environment_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    kind = kernel_peers.PEERS["celery"]
    python = tmp_path / "celery" / "bin" / "python"
    python.parent.mkdir(parents=True)
    (tmp_path / "celery" / "installed.txt").write_text("\n".join(kind.requirements))
    assert kernel_peers.environment("celery", tmp_path) == python
    assert list(python.parent.iterdir()) == []
