"""What browsers are told, and which of their requests are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from afl.server import files
from afl.server.application import API, create_app
from afl.server.backend import Backend
from afl.server.headers import is_loopback, policy
from tests.server.calling import token_for

PAGE = '<!doctype html><html><head><title>x</title></head><body><div id="root"></div></body></html>'


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a dashboard in it."""
    (tmp_path / "static" / "assets").mkdir(parents=True)
    (tmp_path / "static" / "index.html").write_text(PAGE, encoding="utf-8")
    (tmp_path / "static" / "assets" / "app-1a2b3c4d.js").write_text("x" * 5000, encoding="utf-8")
    (tmp_path / "static" / "favicon.svg").write_text("<svg/>", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    monkeypatch.setattr(files, "STATIC", tmp_path / "static")
    return tmp_path / "static"


@pytest.fixture
def client(memory_backend: Backend, built: Path) -> TestClient:
    return TestClient(create_app(memory_backend))


@pytest.fixture
def local(memory_backend: Backend) -> TestClient:
    app = create_app(replace(memory_backend, auth=False))
    return TestClient(app, base_url="http://127.0.0.1:7400")


@pytest.mark.parametrize("path", ["/", "/livez", f"{API}/me", f"{API}/nothing", "/assets/no.js"])
def test_every_answer_has_the_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "camera=()" in headers["permissions-policy"]
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert "strict-transport-security" not in headers


def test_the_policy_allows_nothing_inline() -> None:
    assert "unsafe" not in policy()
    assert "unsafe" not in policy("abc")
    for part in ("frame-ancestors 'none'", "base-uri 'none'", "connect-src 'self'"):
        assert part in policy().split("; ")


def test_behind_https_browsers_stay_there(memory_backend: Backend) -> None:
    client = TestClient(create_app(memory_backend), base_url="https://testserver")
    assert client.get("/livez").headers["strict-transport-security"].startswith("max-age=")


def test_each_page_has_a_nonce_of_its_own(client: TestClient) -> None:
    nonces = set()
    for _ in range(2):
        answer = client.get("/runs/7")
        nonce = answer.text.split('name="csp-nonce" content="')[1].split('"')[0]
        assert f"style-src 'self' 'nonce-{nonce}'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        nonces.add(nonce)
    assert len(nonces) == 2
    assert "nonce" not in client.get("/livez").headers["content-security-policy"]


def test_files_are_sent_and_kept(client: TestClient) -> None:
    answer = client.get("/assets/app-1a2b3c4d.js", headers={"Accept-Encoding": "gzip"})
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-encoding"] == "gzip"
    assert "javascript" in answer.headers["content-type"]
    assert client.get("/favicon.svg").headers["cache-control"] == "no-cache"
    assert client.head("/favicon.svg").status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/../secret.txt", "/%2e%2e/secret.txt", "/assets/%2e%2e/%2e%2e/secret.txt", "/a%00.txt"],
)
def test_nothing_beside_the_folder_is_sent(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "secret" not in answer.json()["code"]


@pytest.mark.parametrize("path", ["/", "/index.html", "/runs", "/runs/01a1", "/inbox/a/b"])
def test_every_page_is_the_one_page(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert '<div id="root">' in answer.text


def test_a_dashboard_that_is_not_built_says_how_to(
    memory_backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "STATIC", tmp_path)
    answer = TestClient(create_app(memory_backend)).get("/")
    assert answer.status_code == 503
    assert "make ui" in answer.text


def test_reports_of_browsers_are_counted(memory_backend: Backend) -> None:
    app = create_app(memory_backend)
    for _ in range(2):
        assert TestClient(app).post(f"{API}/csp-report", json={"csp-report": {}}).status_code == 204
    assert app.state.csp_reports.count == 2
    assert memory_backend.store.audit() == []


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::2]", ""]
)
def test_without_authentication_only_this_machine_is_meant(local: TestClient, host: str) -> None:
    answer = local.get(f"{API}/me", headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (421, "server.wrong_host")


@pytest.mark.parametrize("host", ["localhost", "localhost:7400", "127.0.0.1:7400", "[::1]:7400"])
def test_this_machine_has_several_names(local: TestClient, host: str) -> None:
    assert local.get(f"{API}/me", headers={"Host": host}).status_code == 200


def test_with_authentication_any_host_will_do(memory_backend: Backend) -> None:
    client = TestClient(create_app(memory_backend), headers=token_for(memory_backend, "viewer"))
    assert client.get(f"{API}/me", headers={"Host": "flows.example"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:7400"}, 403),
        ({"Origin": "http://127.0.0.1:7400"}, 200),
        ({"Origin": "http://127.0.0.1:9000"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
    ids=str,
)
def test_a_page_of_another_site_changes_nothing(
    local: TestClient, headers: dict[str, str], status: int
) -> None:
    assert local.post(f"{API}/events", json={"name": "x"}, headers=headers).status_code == status


def test_loopback() -> None:
    assert [
        each for each in ("127.0.0.1", "127.9.9.9", "::1", "localhost") if not is_loopback(each)
    ] == []
    assert [
        each for each in ("0.0.0.0", "::", "example.org", "192.168.0.1") if is_loopback(each)
    ] == []
