"""Which MCP servers there are: tables `[mcp.NAME]` of a TOML file.

    [mcp.files]
    command = "mcp-files"                  # a program that speaks on its stdin and stdout, or
    args = ["--root", "."]
    env = { FILES_TOKEN = "${FILES_TOKEN}" }

    [mcp.tickets]
    url = "https://tickets.example/mcp"    # a server that speaks streamable HTTP
    headers = { Authorization = "Bearer ${TICKETS_TOKEN}" }
    tools = ["find", "close"]              # only these; without it all
    effects = { close = "irreversible" }   # instead of what the server says about its tools
    timeout = "30s"                        # of one call

`${NAME}` in `env` and `headers` is read from the environment when a connection is made. The secret
itself is neither in the file nor in anything that is stored or shown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from afl.base.durations import parse_duration
from afl.base.errors import ConfigError, DurationError

EFFECTS = ("pure", "idempotent", "keyed", "irreversible")

_KEYS = ("command", "args", "env", "url", "headers", "tools", "effects", "timeout")
_OF_PROGRAMS, _OF_URLS = ("args", "env"), ("headers",)
#: So that `server__tool` can be taken apart, and a task's name has no dot.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?=[A-Za-z0-9-])){0,31}")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_HEADERS = ("authorization", "proxy-authorization", "cookie", "x-api-key")


@dataclass(frozen=True, slots=True)
class McpServer:
    """An MCP server: a program to start, or a URL."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    #: values may refer to the environment, as `${NAME}`; so may those of the headers
    env: Mapping[str, str] = field(default_factory=dict)
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: the tools that may be used; None for all
    tools: frozenset[str] | None = None
    #: by tool, instead of what its annotations say
    effects: Mapping[str, str] = field(default_factory=dict)
    #: how long one call may take
    timeout: timedelta = timedelta(minutes=1)

    def allows(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools


def read_servers(path: Path) -> tuple[McpServer, ...]:
    """The servers of a file that has nothing else in it. Raises `ConfigError`."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}.") from error
    _refuse_unknown(document, ("mcp",), str(path), "tables")
    servers = servers_in(document, str(path))
    if not servers:
        raise ConfigError(f"{path} names no MCP server; add a table such as [mcp.files].")
    return servers


def servers_in(document: Mapping[str, object], source: str) -> tuple[McpServer, ...]:
    """The servers of a file that may have other tables too. Raises `ConfigError`."""
    tables = document.get("mcp", {})
    if not isinstance(tables, dict):
        raise ConfigError(f"{source}: `mcp` is not a table; write [mcp.NAME] for each server.")
    return tuple(_server(name, table, f"{source}: mcp.{name}") for name, table in tables.items())


def resolve(values: Mapping[str, str], environ: Mapping[str, str], where: str) -> dict[str, str]:
    """The values with what they refer to. Raises `ConfigError` for what is not set."""

    def read(match: re.Match[str]) -> str:
        name = match[1]
        if not environ.get(name):
            raise ConfigError(f"{where} needs the environment variable {name}, which is not set.")
        return environ[name]

    return {key: _REFERENCE.sub(read, value) for key, value in values.items()}


def _server(name: str, table: object, where: str) -> McpServer:
    if not isinstance(table, dict):
        raise ConfigError(f"{where} is not a table; write [mcp.{name}] and what it has below.")
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{where}: a server's name has up to 32 letters, digits, `-` and single `_`, and ends "
            "with no `_`; rename it."
        )
    _refuse_unknown(table, _KEYS, where, "keys")
    command, url = _text(table, "command", where), _text(table, "url", where)
    _check_transport(table, command, url, where)
    tools = _texts(table, "tools", where)
    headers = _text_table(table, "headers", where)
    _refuse_written_secrets(headers, where)
    return McpServer(
        name=name,
        command=command,
        args=_texts(table, "args", where) or (),
        env=_text_table(table, "env", where),
        url=url,
        headers=headers,
        tools=None if tools is None else frozenset(tools),
        effects=_effects(table, tools, where),
        timeout=_timeout(table, where),
    )


def _check_transport(
    table: Mapping[str, object], command: str | None, url: str | None, where: str
) -> None:
    if (command is None) is (url is None):
        raise ConfigError(f"{where} needs `command` or `url`, and not both.")
    other, misplaced = ("url", _OF_PROGRAMS) if command is None else ("command", _OF_URLS)
    for key in misplaced:
        if key in table:
            raise ConfigError(f"{where} has `{other}`, with which `{key}` has no use; remove it.")
    if url is not None:
        _check_url(url, where)


def _check_url(url: str, where: str) -> None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (reading it checks it)
    except ValueError as error:
        raise ConfigError(f"{where}.url is not a URL: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{where}.url is not a URL of http or https, as https://host/mcp is.")
    if "@" in parts.netloc:
        raise ConfigError(
            f"{where}.url has a user in it; write `headers` with "
            'Authorization = "Basic ${NAME}" instead.'
        )


def _refuse_written_secrets(headers: Mapping[str, str], where: str) -> None:
    for header, value in headers.items():
        if header.lower() in _SECRET_HEADERS and not _REFERENCE.search(value):
            raise ConfigError(
                f"{where}.headers.{header} is a secret written into a file; put it into an "
                'environment variable and write its name, as in "Bearer ${NAME}".'
            )


def _effects(
    table: Mapping[str, object], tools: Iterable[str] | None, where: str
) -> Mapping[str, str]:
    effects = _text_table(table, "effects", where)
    for tool, effect in effects.items():
        if effect not in EFFECTS:
            raise ConfigError(
                f"{where}.effects.{tool} is '{effect}'. It can be {', '.join(EFFECTS)}."
                + _suggestion(effect, EFFECTS)
            )
        if tools is not None and tool not in tools:
            raise ConfigError(
                f"{where}.effects names `{tool}`, which is not in `tools`."
                + _suggestion(tool, tools)
            )
    return effects


def _timeout(table: Mapping[str, object], where: str) -> timedelta:
    text = _text(table, "timeout", where)
    if text is None:
        return McpServer("").timeout
    try:
        timeout = timedelta(milliseconds=parse_duration(text))
    except (DurationError, OverflowError) as error:
        raise ConfigError(f"{where}.timeout: {error}") from error
    if not timedelta(0) < timeout <= timedelta(days=1):
        raise ConfigError(f"{where}.timeout is '{text}'; it can be up to 1d.")
    return timeout


def _text(table: Mapping[str, object], key: str, where: str) -> str | None:
    value = table.get(key)
    if value is None or (isinstance(value, str) and value):
        return value
    raise ConfigError(f'{where}.{key} is not a text; write {key} = "...".')


def _texts(table: Mapping[str, object], key: str, where: str) -> tuple[str, ...] | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f'{where}.{key} is not a list of texts; write {key} = ["..."].')
    return tuple(value)


def _text_table(table: Mapping[str, object], key: str, where: str) -> dict[str, str]:
    value = table.get(key, {})
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise ConfigError(f'{where}.{key} is not a table of texts; write {key} = {{ A = "..." }}.')
    return value


def _refuse_unknown(
    table: Mapping[str, object], known: tuple[str, ...], where: str, what: str
) -> None:
    for key in table:
        if key not in known:
            hint = _suggestion(key, known) or f" The {what} are {', '.join(known)}."
            raise ConfigError(f"{where} has `{key}`, which means nothing.{hint}")


def _suggestion(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), n=1)
    return f" Did you mean `{close[0]}`?" if close else ""
