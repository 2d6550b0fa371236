"""What environment variables can set, and the only code that reads them.

    AFL_COLOR   auto (the default), always or never: colour in the output of commands
    NO_COLOR    anything but empty turns colour off, unless AFL_COLOR is always
    AFL_DEBUG   1, true, yes or on: show tracebacks; 0, false, no or off (the default): do not
    AFL_DATABASE_URL
                the database that keeps the work, such as postgresql://host/name or
                mongodb://host/name, or the server that works on it, such as https://host:7400
    AFL_NATS_URL
                the NATS server through which workers hear of work at once, such as nats://host;
                without it they hear through the database
    AFL_PREPARE on (the default) or off: whether statements are prepared; off is for a pooler that
                cannot carry them, such as PgBouncer before 1.21
    AFL_RETENTION
                how long finished work is kept, such as 30d (the default) or 12w
    AFL_AUDIT_RETENTION
                how long the audit trail is kept, such as 52w (the default)
    AFL_MODEL   the model that answers prompts which name none, such as anthropic:claude-sonnet-5;
                of several, with commas between them, each is asked when those before do not answer
    AFL_MCP     the TOML file that names the MCP servers whose tools prompts may use
    AFL_REDIS_URL
                the Redis server or cluster that has the mailboxes, the registry of agents and the
                circuit breakers that processes share, such as redis://host
    AFL_MAIL    redis or database: where mailboxes are; without it in Redis, if AFL_REDIS_URL is
                set, else in the database
    AFL_LOGS_URL
                the AgentFlow server that takes the log lines of workers, such as https://host:7400;
                without it they go through NATS, if AFL_NATS_URL is set, else to the database
    AFL_LOG_FORMAT
                console (the default) or json: how `afl serve`, `afl worker` and `afl dev` log
    AFL_LOG_LEVEL
                debug, info, warning or error: what they log; without it, what handlers log
                through their context from info on, and everything else from warning on
    AFL_OIDC_ISSUER
                the identity provider whose tokens `afl serve` accepts, such as
                https://login.example.org; needs AFL_OIDC_AUDIENCE
    AFL_OIDC_AUDIENCE
                for whom the identity provider has to have made its tokens
    AFL_OIDC_CLIENT_ID
                the name under which the identity provider knows the dashboard: then people sign in
                there with their browsers
    AFL_OIDC_CLIENT_SECRET
                the secret of that client, if it has one
    AFL_TOKEN   the token for an AgentFlow server, as `afl tokens create` made it

A variable that is set but empty counts as not set. Any other name that starts with `AFL_` is an
error: a misspelt setting that is silently ignored costs an evening.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import Self

from afl.base.durations import UNITS_MS, parse_duration
from afl.base.errors import ConfigError, DurationError

__all__ = [
    "LOG_LEVELS",
    "ColorMode",
    "LogFormat",
    "MailPlace",
    "Settings",
    "environment",
    "provide",
]

_PREFIX = "AFL_"
_KNOWN = (
    "AFL_COLOR",
    "AFL_DEBUG",
    "AFL_DATABASE_URL",
    "AFL_NATS_URL",
    "AFL_PREPARE",
    "AFL_RETENTION",
    "AFL_AUDIT_RETENTION",
    "AFL_MODEL",
    "AFL_MCP",
    "AFL_REDIS_URL",
    "AFL_MAIL",
    "AFL_LOGS_URL",
    "AFL_LOG_FORMAT",
    "AFL_LOG_LEVEL",
    "AFL_OIDC_ISSUER",
    "AFL_OIDC_AUDIENCE",
    "AFL_OIDC_CLIENT_ID",
    "AFL_OIDC_CLIENT_SECRET",
    "AFL_TOKEN",
)
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")
#: From which level on something can be logged.
LOG_LEVELS = ("debug", "info", "warning", "error")
_RETENTION_MS = 30 * UNITS_MS["d"]
_AUDIT_RETENTION_MS = 52 * UNITS_MS["w"]


class ColorMode(StrEnum):
    """When a command colours its output."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class MailPlace(StrEnum):
    """Where mailboxes are."""

    REDIS = "redis"
    DATABASE = "database"


class LogFormat(StrEnum):
    """How a process writes down what it logs."""

    CONSOLE = "console"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the environment can set, checked once, then handed down."""

    color: ColorMode = ColorMode.AUTO
    debug: bool = False
    database_url: str | None = None
    nats_url: str | None = None
    prepare: bool = True
    retention_ms: int = _RETENTION_MS
    audit_retention_ms: int = _AUDIT_RETENTION_MS
    models: tuple[str, ...] = ()
    mcp_file: str | None = None
    redis_url: str | None = None
    logs_url: str | None = None
    mail: MailPlace = MailPlace.DATABASE
    log_format: LogFormat = LogFormat.CONSOLE
    log_level: str | None = None
    #: kept out of what is printed
    token: str | None = field(default=None, repr=False)
    oidc_issuer: str | None = None
    oidc_audience: str | None = None
    oidc_client_id: str | None = None
    #: kept out of what is printed
    oidc_client_secret: str | None = field(default=None, repr=False)

    @property
    def prepare_threshold(self) -> int | None:
        """After how many uses a statement is prepared; None for never."""
        return 1 if self.prepare else None

    @classmethod
    def load(cls) -> Self:
        """The settings of this process."""
        return cls.from_env(os.environ)

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """The settings that these variables make.

        Raises:
            ConfigError: a name or a value is unknown; the message names it and suggests another.
        """
        _refuse_unknown(environ)
        issuer, audience = _oidc(environ)
        return cls(
            color=_color(environ),
            debug=_flag(environ, "AFL_DEBUG", default=False),
            database_url=environ.get("AFL_DATABASE_URL") or None,
            nats_url=environ.get("AFL_NATS_URL") or None,
            prepare=_flag(environ, "AFL_PREPARE", default=True),
            retention_ms=_duration(environ, "AFL_RETENTION", _RETENTION_MS),
            audit_retention_ms=_duration(environ, "AFL_AUDIT_RETENTION", _AUDIT_RETENTION_MS),
            models=_names(environ, "AFL_MODEL"),
            mcp_file=environ.get("AFL_MCP") or None,
            redis_url=environ.get("AFL_REDIS_URL") or None,
            logs_url=environ.get("AFL_LOGS_URL") or None,
            mail=_mail(environ),
            log_format=LogFormat(_choice(environ, "AFL_LOG_FORMAT", list(LogFormat)) or "console"),
            log_level=_choice(environ, "AFL_LOG_LEVEL", LOG_LEVELS),
            token=environ.get("AFL_TOKEN") or None,
            oidc_issuer=issuer,
            oidc_audience=audience,
            oidc_client_id=_oidc_client(environ, issuer),
            oidc_client_secret=environ.get("AFL_OIDC_CLIENT_SECRET") or None,
        )


def environment() -> Mapping[str, str]:
    """All variables of this process, for files that refer to secrets by their names."""
    return os.environ


def provide(name: str, value: str) -> None:
    """Sets a variable for the code of users in this process, and for the processes it starts."""
    os.environ[name] = value


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    unknown = sorted(name for name in environ if name.startswith(_PREFIX) and name not in _KNOWN)
    if unknown:
        raise ConfigError("\n".join(_unknown(name) for name in unknown))


def _unknown(name: str) -> str:
    close = get_close_matches(name, _KNOWN, n=1)
    hint = f"Did you mean {close[0]}?" if close else f"The settings are {', '.join(_KNOWN)}."
    return f"There is no setting {name}. {hint}"


def _color(environ: Mapping[str, str]) -> ColorMode:
    value = environ.get("AFL_COLOR", "")
    modes = [mode.value for mode in ColorMode]
    if value and value not in modes:
        raise _bad_value("AFL_COLOR", value, modes)
    mode = ColorMode(value) if value else ColorMode.AUTO
    if mode is ColorMode.AUTO and environ.get("NO_COLOR"):
        return ColorMode.NEVER
    return mode


def _mail(environ: Mapping[str, str]) -> MailPlace:
    value = environ.get("AFL_MAIL", "")
    has_redis = bool(environ.get("AFL_REDIS_URL"))
    places = [place.value for place in MailPlace]
    if value and value not in places:
        raise _bad_value("AFL_MAIL", value, places)
    if value == MailPlace.REDIS and not has_redis:
        raise ConfigError("AFL_MAIL is redis, but there is none: set AFL_REDIS_URL.")
    if value:
        return MailPlace(value)
    return MailPlace.REDIS if has_redis else MailPlace.DATABASE


def _oidc(environ: Mapping[str, str]) -> tuple[str | None, str | None]:
    issuer = environ.get("AFL_OIDC_ISSUER") or None
    audience = environ.get("AFL_OIDC_AUDIENCE") or None
    if (issuer is None) != (audience is None):
        missing = "AFL_OIDC_AUDIENCE" if audience is None else "AFL_OIDC_ISSUER"
        raise ConfigError(f"Signing in needs an issuer and an audience: set {missing} too.")
    if issuer is not None and not issuer.startswith(("https://", "http://")):
        raise ConfigError(f"AFL_OIDC_ISSUER is '{issuer}'. It has to be a URL with https://.")
    return issuer, audience


def _oidc_client(environ: Mapping[str, str], issuer: str | None) -> str | None:
    client = environ.get("AFL_OIDC_CLIENT_ID") or None
    if issuer is None and (client or environ.get("AFL_OIDC_CLIENT_SECRET")):
        raise ConfigError("Signing in needs an issuer and an audience: set AFL_OIDC_ISSUER too.")
    if client is None and environ.get("AFL_OIDC_CLIENT_SECRET"):
        raise ConfigError("There is the secret of a client without a name: set AFL_OIDC_CLIENT_ID.")
    return client


def _flag(environ: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = environ.get(name, "").lower()
    if not value:
        return default
    if value not in _TRUE + _FALSE:
        raise _bad_value(name, environ[name], [*_TRUE, *_FALSE])
    return value in _TRUE


def _choice(environ: Mapping[str, str], name: str, allowed: Sequence[str]) -> str | None:
    value = environ.get(name, "").lower()
    if value and value not in allowed:
        raise _bad_value(name, environ[name], [*allowed])
    return value or None


def _names(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in environ.get(name, "").split(",") if part.strip())


def _duration(environ: Mapping[str, str], name: str, default_ms: int) -> int:
    value = environ.get(name)
    if not value:
        return default_ms
    try:
        return parse_duration(value)
    except DurationError as error:
        raise ConfigError(f"{name}: {error.message}") from error


def _bad_value(name: str, value: str, allowed: list[str]) -> ConfigError:
    close = get_close_matches(value.lower(), allowed, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    return ConfigError(f"{name} is '{value}'. It can be {', '.join(allowed)}.{hint}")
