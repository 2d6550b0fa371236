"""Options that several commands take, and the types of their values."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import click

from afl.base.durations import parse_duration
from afl.base.errors import DurationError
from afl.kernel.model import Json

F = TypeVar("F", bound=Callable[..., Any])


def pair(text: str) -> tuple[str, str]:
    """The type of `name=value`."""
    name, between, value = text.partition("=")
    if not between or not name.strip():
        raise click.BadParameter(f"'{text}' is not of the form NAME=VALUE")
    return name.strip(), value


def span(text: str) -> timedelta:
    """The type of a duration as people write it, such as 30s or 1h30m."""
    try:
        return timedelta(milliseconds=parse_duration(text))
    except DurationError as error:
        raise click.BadParameter(error.message) from error
    except OverflowError:
        raise click.BadParameter(f"'{text}' is longer than anything lasts") from None


def moment(text: str) -> timedelta | datetime:
    """The type of a time with its zone, or how long from now."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return span(text)
    if found.tzinfo is None:
        raise click.BadParameter(f"'{text}' has no zone; write it as in 2027-01-31T09:00:00Z")
    return found


def json_value(text: str) -> Json:
    """The type of a JSON value."""
    try:
        value: Json = json.loads(text)
    except json.JSONDecodeError as error:
        raise click.BadParameter(
            f"this is not JSON: {error}; a text needs quotes, as in '\"text\"'"
        ) from error
    return value


database_option = click.option(
    "--database",
    metavar="URL",
    help="Which database, such as postgresql://host/name or mongodb://host/name; else the setting "
    "AFL_DATABASE_URL.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
limit_option = click.option(
    "--limit",
    type=click.IntRange(min=1, max=10_000),
    default=50,
    show_default=True,
    metavar="N",
    help="How many at most.",
)
timeout_option = click.option(
    "--timeout", type=span, metavar="DURATION", help="How long to wait, such as 10m."
)


def input_options(command: F) -> F:
    """`--input` and `--inputs`."""
    one = click.option(
        "-i",
        "--input",
        "pairs",
        type=pair,
        metavar="NAME=VALUE",
        multiple=True,
        help="One input; a String as it is, any other type as JSON.",
    )
    many = click.option(
        "--inputs",
        "inputs_file",
        metavar="FILE",
        help="A JSON object with inputs, or - for standard input; --input wins over it.",
    )
    return one(many(command))
