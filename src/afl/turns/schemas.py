"""Whether a value fits a JSON Schema, and where it does not. Pure: nothing is fetched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import cast

from jsonschema import Draft202012Validator, SchemaError, ValidationError, validators
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from afl.kernel.model import Json
from afl.turns.contents import json_text

#: Complaints beyond this many help nobody to mend anything.
_MOST = 5
_LONGEST = 300


def faults(schema: dict[str, Json], value: Json, *, trusted: bool = True) -> list[str]:
    """What is wrong with the value, each with the name of the field; empty if it fits.

    A schema that somebody else has written is not trusted: its regular expressions could keep us
    busy forever, so they are left to its author to check.
    """
    try:
        checker = _checker(json_text(schema), trusted)
        found = sorted(
            checker.iter_errors(value),
            key=lambda error: [str(part) for part in error.absolute_path],
        )
    except (SchemaError, Unresolvable, re.error, RecursionError) as error:
        return [f"the schema cannot be used: {error!s:.{_LONGEST}}"]
    shown = [_fault(error) for error in found[:_MOST]]
    return [*shown, f"and {len(found) - _MOST} more"] if len(found) > _MOST else shown


def fits(schema: dict[str, Json], value: Json) -> bool:
    """Whether a value is as the schema says."""
    return not faults(schema, value)


@lru_cache(maxsize=128)
def _checker(text: str, trusted: bool) -> Validator:
    """The checker of a schema. Reading a schema takes far longer than using it."""
    schema = json.loads(text)
    kind = _kind(str(schema.get("$schema", "")), trusted)
    kind.check_schema(schema)
    # A reference to elsewhere finds nothing in this registry, instead of being fetched.
    return kind(schema, registry=Registry())


@lru_cache(maxsize=16)
def _kind(dialect: str, trusted: bool) -> type[Validator]:
    chosen = validators.validator_for({"$schema": dialect}, default=Draft202012Validator)
    if trusted:
        return chosen
    additional = chosen.VALIDATORS["additionalProperties"]

    def without_patterns(
        validator: Validator, allowed: Json, value: Json, schema: dict[str, Json]
    ) -> Iterable[ValidationError]:
        if "patternProperties" in schema:
            return ()
        found: Iterable[ValidationError] = additional(validator, allowed, value, schema)
        return found

    extended = validators.extend(  # type: ignore[no-untyped-call]
        chosen,
        {
            "pattern": _nothing,
            "patternProperties": _nothing,
            "additionalProperties": without_patterns,
        },
    )
    return cast("type[Validator]", extended)


def _nothing(*_: object) -> Iterable[ValidationError]:
    return ()


def _fault(error: ValidationError) -> str:
    place = ""
    for part in error.absolute_path:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
    message = error.message
    if len(message) > _LONGEST:  # it quotes the value, however long that is
        message = f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 2 :]}"
    return f"`{place}`: {message}" if place else message
