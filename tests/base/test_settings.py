from __future__ import annotations

import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from afl.base.errors import ConfigError
from afl.base.settings import ColorMode, LogFormat, MailPlace, Settings


def test_an_empty_environment_gives_the_defaults() -> None:
    assert Settings.from_env({}) == Settings(color=ColorMode.AUTO, debug=False)


def test_other_programs_may_have_their_variables() -> None:
    assert Settings.from_env({"PATH": "/bin", "AFLOAT": "1", "afl_color": "x"}) == Settings()


@pytest.mark.parametrize("mode", list(ColorMode))
def test_color_is_read(mode: ColorMode) -> None:
    assert Settings.from_env({"AFL_COLOR": mode.value}).color is mode


@pytest.mark.parametrize(
    ("environ", "mode"),
    [
        ({"NO_COLOR": "1"}, ColorMode.NEVER),
        ({"NO_COLOR": "0"}, ColorMode.NEVER),
        ({"NO_COLOR": ""}, ColorMode.AUTO),
        ({"NO_COLOR": "1", "AFL_COLOR": ""}, ColorMode.NEVER),
        ({"NO_COLOR": "1", "AFL_COLOR": "auto"}, ColorMode.NEVER),
        ({"NO_COLOR": "1", "AFL_COLOR": "always"}, ColorMode.ALWAYS),
    ],
)
def test_no_color_is_respected_unless_ours_says_always(
    environ: dict[str, str], mode: ColorMode
) -> None:
    assert Settings.from_env(environ).color is mode


@pytest.mark.parametrize(
    ("value", "debug"),
    [("1", True), ("TRUE", True), ("on", True), ("0", False), ("no", False), ("", False)],
)
def test_debug_is_a_flag(value: str, debug: bool) -> None:
    assert Settings.from_env({"AFL_DEBUG": value}).debug is debug


@pytest.mark.parametrize(("value", "threshold"), [("off", None), ("on", 1), ("", 1)])
def test_statements_are_prepared_unless_told_otherwise(value: str, threshold: int | None) -> None:
    assert Settings.from_env({"AFL_PREPARE": value}).prepare_threshold == threshold


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"AFL_COLOUR": "never"}, "There is no setting AFL_COLOUR. Did you mean AFL_COLOR?"),
        (
            {"AFL_ZZZ": "1"},
            "There is no setting AFL_ZZZ. The settings are AFL_COLOR, AFL_DEBUG, AFL_DATABASE_URL, "
            "AFL_NATS_URL, AFL_PREPARE, AFL_RETENTION, AFL_AUDIT_RETENTION, AFL_MODEL, AFL_MCP, "
            "AFL_REDIS_URL, AFL_MAIL, AFL_LOGS_URL, AFL_LOG_FORMAT, AFL_LOG_LEVEL, "
            "AFL_OIDC_ISSUER, AFL_OIDC_AUDIENCE, AFL_OIDC_CLIENT_ID, AFL_OIDC_CLIENT_SECRET, "
            "AFL_TOKEN.",
        ),
        (
            {"AFL_DEBGU": "1", "AFL_COLORS": ""},
            "There is no setting AFL_COLORS. Did you mean AFL_COLOR?\n"
            "There is no setting AFL_DEBGU. Did you mean AFL_DEBUG?",
        ),
        (
            {"AFL_COLOR": "Alway"},
            "AFL_COLOR is 'Alway'. It can be auto, always, never. Did you mean 'always'?",
        ),
        (
            {"AFL_DEBUG": "maybe"},
            "AFL_DEBUG is 'maybe'. It can be 1, true, yes, on, 0, false, no, off.",
        ),
        (
            {"AFL_LOG_FORMAT": "jsn"},
            "AFL_LOG_FORMAT is 'jsn'. It can be console, json. Did you mean 'json'?",
        ),
        (
            {"AFL_LOG_LEVEL": "loud"},
            "AFL_LOG_LEVEL is 'loud'. It can be debug, info, warning, error.",
        ),
        (
            {"AFL_RETENTION": "30"},
            "AFL_RETENTION: '30' is not a duration: '30' has no unit; the units are w, d, h, m, s, "
            "ms. Write whole numbers with units, the largest unit first: 500ms, 30s, 10m, 2h, 3d, "
            "1w, 1h30m.",
        ),
    ],
)
def test_a_mistake_is_named_and_a_better_word_suggested(
    environ: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        Settings.from_env(environ)


def test_load_reads_the_process_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFL_COLOR", "always")
    monkeypatch.setenv("AFL_DEBUG", "yes")
    assert Settings.load() == Settings(color=ColorMode.ALWAYS, debug=True)


@pytest.mark.parametrize(
    ("value", "expected"), [("postgresql://db/afl", "postgresql://db/afl"), ("", None)]
)
def test_the_database_is_what_is_set(value: str, expected: str | None) -> None:
    assert Settings.from_env({"AFL_DATABASE_URL": value}).database_url == expected
    assert Settings.from_env({}).database_url is None


@pytest.mark.parametrize(("value", "days"), [("12w", 84), ("0s", 0), ("", 30)])
def test_the_retention_is_a_duration(value: str, days: int) -> None:
    assert Settings.from_env({"AFL_RETENTION": value}).retention_ms == days * 24 * 60 * 60 * 1000


def test_finished_work_is_kept_for_a_month_by_default() -> None:
    assert Settings.from_env({}).retention_ms == 30 * 24 * 60 * 60 * 1000


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().debug = True  # type: ignore[misc]


@pytest.mark.parametrize(
    ("value", "models"),
    [("", ()), ("a:b", ("a:b",)), ("a:b, c:d,", ("a:b", "c:d"))],
)
def test_models_are_asked_in_the_order_of_the_setting(value: str, models: tuple[str, ...]) -> None:
    assert Settings.from_env({"AFL_MODEL": value}).models == models


def test_the_file_of_mcp_servers() -> None:
    assert Settings.from_env({}).mcp_file is None
    assert Settings.from_env({"AFL_MCP": "mcp.toml"}).mcp_file == "mcp.toml"


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({}, MailPlace.DATABASE),
        ({"AFL_REDIS_URL": "redis://r"}, MailPlace.REDIS),
        ({"AFL_REDIS_URL": "redis://r", "AFL_MAIL": "redis"}, MailPlace.REDIS),
        ({"AFL_REDIS_URL": "redis://r", "AFL_MAIL": "database"}, MailPlace.DATABASE),
    ],
)
def test_mail_is_in_redis_if_there_is_one_unless_said_otherwise(
    environ: dict[str, str], place: MailPlace
) -> None:
    settings = Settings.from_env(environ)
    assert settings.mail is place
    assert settings.redis_url == environ.get("AFL_REDIS_URL")


def test_mail_in_a_redis_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="set AFL_REDIS_URL"):
        Settings.from_env({"AFL_MAIL": "redis"})
    with pytest.raises(ConfigError, match="AFL_MAIL"):
        Settings.from_env({"AFL_MAIL": "pigeon"})


def test_signing_in_needs_an_issuer_and_an_audience() -> None:
    both = {"AFL_OIDC_ISSUER": "https://login.example.org", "AFL_OIDC_AUDIENCE": "agentflow"}
    settings = Settings.from_env(both)
    assert settings.oidc_issuer == "https://login.example.org"
    assert settings.oidc_audience == "agentflow"
    for missing in both:
        rest = {name: value for name, value in both.items() if name != missing}
        with pytest.raises(ConfigError, match=f"set {missing} too"):
            Settings.from_env(rest)
    with pytest.raises(ConfigError, match="a URL with https://"):
        Settings.from_env({**both, "AFL_OIDC_ISSUER": "login.example.org"})


def test_a_browser_signs_in_as_a_client_that_the_issuer_knows() -> None:
    both = {"AFL_OIDC_ISSUER": "https://login.example.org", "AFL_OIDC_AUDIENCE": "agentflow"}
    client = {"AFL_OIDC_CLIENT_ID": "dashboard", "AFL_OIDC_CLIENT_SECRET": "hush"}
    settings = Settings.from_env({**both, **client})
    assert (settings.oidc_client_id, settings.oidc_client_secret) == ("dashboard", "hush")
    assert "hush" not in repr(settings)
    with pytest.raises(ConfigError, match="set AFL_OIDC_ISSUER too"):
        Settings.from_env(client)
    with pytest.raises(ConfigError, match="set AFL_OIDC_CLIENT_ID"):
        Settings.from_env({**both, "AFL_OIDC_CLIENT_SECRET": "hush"})


def test_how_processes_log_is_read() -> None:
    given = Settings.from_env({"AFL_LOG_FORMAT": "JSON", "AFL_LOG_LEVEL": "debug"})
    assert (given.log_format, given.log_level) == (LogFormat.JSON, "debug")
    assert Settings.from_env({"AFL_LOG_LEVEL": ""}).log_level is None


def test_every_setting_is_in_the_reference() -> None:
    told = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text("utf-8")
    with pytest.raises(ConfigError) as caught:
        Settings.from_env({"AFL_ZZZ": "1"})
    names = re.findall(r"AFL_\w+", caught.value.message.partition("The settings are")[2])
    assert len(names) > 10
    assert [name for name in names if f"`{name}`" not in told] == []
