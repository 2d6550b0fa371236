"""Signing in with a browser, at an identity provider on this machine."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from starlette.testclient import TestClient

from afl.base.settings import Settings
from afl.server.application import API, create_app
from afl.server.backend import Backend
from afl.server.serving import open_backend
from afl.server.sessions import CSRF, CSRF_HEADER, SESSION, Sessions
from tests.server.calling import last_entry, token_for
from tests.server.issuer import AUDIENCE
from tests.server.provider import CLIENT, SECRET, Provider, providing

#: The answer of a test client, whose library is its own.
Answer: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Browser:
    """A browser that keeps cookies and goes where it is sent, as far as the server."""

    client: TestClient
    provider: Provider

    def login(self, back: str = "/runs?state=failed") -> Answer:
        """The answer that sends it to the provider."""
        return self.client.get("/auth/login", params={"back": back}, follow_redirects=False)

    def at_provider(self, answer: Answer) -> str:
        """Where the provider sends it back to, as the server sees it."""
        assert answer.status_code == 302, answer.text
        sent = httpx.get(answer.headers["location"], follow_redirects=False)
        place = urlsplit(sent.headers["location"])
        assert place.path == "/auth/callback"
        return f"{place.path}?{place.query}"

    def back(self, place: str) -> Answer:
        return self.client.get(place, follow_redirects=False)

    def sign_in(self) -> Answer:
        answer = self.back(self.at_provider(self.login()))
        assert answer.status_code == 302, answer.text
        return answer

    def post(self, path: str, **headers: str) -> Answer:
        form = {"name": "v", "page": "runs", "query": "q", "shared": False}
        return self.client.post(f"{API}{path}", json=form, headers=headers)

    @property
    def csrf(self) -> str:
        return str(self.client.cookies.get(CSRF))


@pytest.fixture(scope="module")
def the_provider() -> Iterator[Provider]:
    with providing() as provider:
        yield provider


@pytest.fixture
def provider(the_provider: Provider) -> Provider:
    the_provider.claims = {"sub": "ada", "afl_role": "operator", "afl_tenant": "amber"}
    the_provider.nonce = None
    the_provider.exchanged = 0
    return the_provider


@pytest.fixture
def backend(provider: Provider) -> Iterator[Backend]:
    settings = Settings(
        oidc_issuer=provider.url,
        oidc_audience=AUDIENCE,
        oidc_client_id=CLIENT,
        oidc_client_secret=SECRET,
    )
    with open_backend(f"memory:{secrets.token_hex(4)}", settings) as made:
        yield made


@pytest.fixture
def browser(backend: Backend, provider: Provider) -> Browser:
    return Browser(TestClient(create_app(backend)), provider)


def cookies(answer: Answer) -> dict[str, str]:
    return {each.partition("=")[0]: each for each in answer.headers.get_list("set-cookie")}


class TestSigningIn:
    def test_whoever_was_there_is_known_and_back_where_they_were(self, browser: Browser) -> None:
        assert browser.client.get(f"{API}/me").status_code == 401
        answer = browser.sign_in()
        assert answer.headers["location"] == "/runs?state=failed"
        me = browser.client.get(f"{API}/me").json()
        assert (me["subject"], me["role"], me["tenant"]) == ("oidc:ada", "operator", "amber")
        offer = browser.client.get("/auth/offer").json()
        assert offer == {"sign_in": True, "signed_in": True}

    def test_the_provider_is_asked_with_a_challenge_and_not_with_the_verifier(
        self, browser: Browser
    ) -> None:
        place = urlsplit(browser.login().headers["location"])
        asked = {name: values[0] for name, values in parse_qs(place.query).items()}
        assert asked["client_id"] == CLIENT
        assert asked["redirect_uri"] == "http://testserver/auth/callback"
        assert asked["code_challenge_method"] == "S256"
        assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
        assert "code_verifier" not in asked
        assert SECRET not in place.query

    def test_the_session_cannot_be_read_by_scripts_or_sent_by_other_sites(
        self, browser: Browser
    ) -> None:
        plain = cookies(browser.sign_in())
        assert "HttpOnly" in plain[SESSION]
        assert "HttpOnly" not in plain[CSRF]
        for cookie in (plain[SESSION], plain[CSRF]):
            assert "SameSite=lax" in cookie
            assert "Secure" not in cookie

    def test_over_https_the_cookies_are_for_https_alone(
        self, backend: Backend, provider: Provider
    ) -> None:
        client = TestClient(create_app(backend), base_url="https://testserver")
        secure = cookies(Browser(client, provider).sign_in())
        assert "Secure" in secure[SESSION]
        assert "Secure" in secure[CSRF]

    @pytest.mark.parametrize(
        "back", ["https://evil.example", "//evil.example", "/\\evil.example", "runs", "/a\nb"]
    )
    def test_nobody_is_sent_to_another_site(self, browser: Browser, back: str) -> None:
        answer = browser.back(browser.at_provider(browser.login(back)))
        assert (answer.status_code, answer.headers["location"]) == (302, "/")


class TestRefused:
    def refused(self, browser: Browser, place: str, status: int = 401) -> str:
        answer = browser.back(place)
        assert answer.status_code == status, answer.text
        assert SESSION not in browser.client.cookies
        assert browser.client.get(f"{API}/me").status_code == 401
        return str(answer.text)

    def test_another_state(self, browser: Browser) -> None:
        place = browser.at_provider(browser.login())
        code = parse_qs(urlsplit(place).query)["code"][0]
        text = self.refused(browser, f"/auth/callback?code={code}&state=guessed")
        assert "not begun in this browser" in text
        assert browser.provider.exchanged == 0

    def test_a_browser_that_has_begun_nothing(self, browser: Browser, backend: Backend) -> None:
        place = browser.at_provider(browser.login())
        victim = Browser(TestClient(create_app(backend)), browser.provider)
        assert "not begun here" in self.refused(victim, place)
        assert browser.provider.exchanged == 0

    def test_another_nonce(self, browser: Browser) -> None:
        browser.provider.nonce = "of another sign-in"
        place = browser.at_provider(browser.login())
        assert "answered another sign-in" in self.refused(browser, place)

    def test_a_code_that_has_expired(self, browser: Browser) -> None:
        place = browser.at_provider(browser.login())
        browser.provider.expire_codes()
        assert "not take its own answer" in self.refused(browser, place)

    def test_a_code_that_was_used(self, browser: Browser) -> None:
        place = browser.at_provider(browser.login())
        assert browser.back(place).status_code == 302
        again = browser.back(place)
        assert again.status_code == 401
        assert browser.provider.exchanged == 1

    def test_a_token_for_somebody_else(self, browser: Browser) -> None:
        browser.provider.claims["aud"] = AUDIENCE
        assert "not accepted" in self.refused(browser, browser.at_provider(browser.login()))

    def test_somebody_without_a_role(self, browser: Browser) -> None:
        browser.provider.claims["afl_role"] = None
        assert "gives no role" in self.refused(browser, browser.at_provider(browser.login()))

    def test_the_provider_says_no(self, browser: Browser) -> None:
        browser.login()
        text = self.refused(browser, "/auth/callback?error=%3Cb%3Edenied&state=x")
        assert "says no: &lt;b&gt;denied" in text

    def test_a_provider_that_is_away(self, backend: Backend, provider: Provider) -> None:
        settings = Settings(
            oidc_issuer="http://127.0.0.1:9", oidc_audience=AUDIENCE, oidc_client_id=CLIENT
        )
        with open_backend(f"memory:{secrets.token_hex(4)}", settings) as lonely:
            answer = Browser(TestClient(create_app(lonely)), provider).login()
        assert answer.status_code == 503
        assert "127.0.0.1:9" in answer.text

    def test_a_server_without_a_client(self, provider: Provider) -> None:
        with open_backend(f"memory:{secrets.token_hex(4)}", Settings()) as plain:
            browser = Browser(TestClient(create_app(plain)), provider)
            assert browser.login().status_code == 404
            assert browser.client.get("/auth/offer").json()["sign_in"] is False


class TestSessions:
    def test_changes_need_what_only_pages_of_this_server_know(
        self, browser: Browser, backend: Backend
    ) -> None:
        browser.sign_in()
        for headers in ({}, {CSRF_HEADER: "guessed"}):
            answer = browser.post("/views", **headers)
            assert answer.status_code == 403
            assert answer.json()["type"].endswith("server.cross_site")
        entry = last_entry(backend)
        assert (entry.action, entry.status) == ("POST /views", 403)
        assert browser.post("/views", **{CSRF_HEADER: browser.csrf}).status_code == 201
        assert last_entry(backend).subject == "oidc:ada"

    def test_what_belongs_to_another_session_does_not_count(
        self, browser: Browser, backend: Backend
    ) -> None:
        browser.sign_in()
        other = Sessions(backend.store)
        foreign = other.csrf(other.begin("oidc:eve", "operator", "amber"))
        assert browser.post("/views", **{CSRF_HEADER: foreign}).status_code == 403

    def test_a_token_goes_before_a_session_and_needs_no_more(
        self, browser: Browser, backend: Backend
    ) -> None:
        browser.sign_in()
        token = token_for(backend, "admin")
        assert browser.post("/views", **token).status_code == 201
        assert browser.client.get(f"{API}/me", headers=token).json()["role"] == "admin"

    def test_a_session_that_was_changed_is_none(self, browser: Browser) -> None:
        browser.sign_in()
        session = str(browser.client.cookies.get(SESSION))
        browser.client.cookies.clear()
        for bad in (session[:-2] + "xx", "x" + session, "x.y.z", ""):
            answer = browser.client.get(f"{API}/me", headers={"Cookie": f"{SESSION}={bad}"})
            assert answer.status_code == 401, bad
        answer = browser.client.get(f"{API}/me", headers={"Cookie": f"{SESSION}={session}"})
        assert answer.status_code == 200

    def test_a_session_ends_after_its_time(
        self, browser: Browser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        browser.sign_in()
        headers = {"Cookie": f"{SESSION}={browser.client.cookies.get(SESSION)}"}
        # the browser would forget the cookie itself
        browser.client.cookies.clear()
        monkeypatch.setattr("itsdangerous.timed.time.time", lambda: 10**10)
        answer = browser.client.get(f"{API}/me", headers=headers)
        assert answer.status_code == 401
        assert "expired" in answer.json()["detail"]

    def test_signing_out_forgets_the_session(self, browser: Browser) -> None:
        browser.sign_in()
        assert browser.client.post("/auth/logout").status_code == 403
        assert browser.client.get(f"{API}/me").status_code == 200
        headers = {CSRF_HEADER: browser.csrf}
        assert browser.client.post("/auth/logout", headers=headers).status_code == 204
        assert SESSION not in browser.client.cookies
        assert browser.client.get(f"{API}/me").status_code == 401
        assert browser.client.post("/auth/logout").status_code == 204
