"""Forms that people fill in, where no facet says what they are: a JSON Schema of a flat object."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from afl.kernel.model import Json
from afl.runtime.conversions import WrongValue
from afl.runtime.operators import described, listed

_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "boolean": ((bool,), "true or false"),
    "string": ((str,), "a text"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "array": ((list,), "a list"),
    "object": ((dict,), "a map"),
    "null": ((type(None),), "null"),
}


def fill_in(form: Mapping[str, Json], values: Mapping[str, Json]) -> dict[str, Json]:
    """The values with the defaults of the form, once they fit it.

    Raises:
        WrongValue: a name is unknown or missing, or a value is not of its type.
    """
    properties = form.get("properties")
    fields = properties if isinstance(properties, dict) else {}
    for name in values:
        if name not in fields:
            near = get_close_matches(name, fields, n=1)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            raise WrongValue(f"the form has no such field{hint}", path=name)
    required = form.get("required")
    filled: dict[str, Json] = {}
    for name, schema in fields.items():
        field = schema if isinstance(schema, dict) else {}
        if name in values:
            _check(name, field, values[name])
            filled[name] = values[name]
        elif "default" in field:
            filled[name] = field["default"]
        elif isinstance(required, list) and name in required:
            raise WrongValue("it is missing", path=name)
    return filled


def _check(name: str, field: Mapping[str, Json], value: Json) -> None:
    kinds = field.get("type")
    known = [_KINDS[str(kind)] for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind]
    # by type: true is no number
    if known and type(value) not in {each for allowed, _ in known for each in allowed}:
        wanted = " or ".join(words for _, words in known)
        raise WrongValue(f"{wanted} belongs here, not {described(value)}", path=name)
    choices = field.get("enum")
    if isinstance(choices, list) and value not in choices:
        raise WrongValue(
            f"{listed([str(each) for each in choices], 'or')} belongs here, not {described(value)}",
            path=name,
        )
