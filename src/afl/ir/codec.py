"""Programs to their stored form and back: versioned JSON, as `program.schema.json` describes it.

    {"format": "afl-program", "version": 1, "hash": "sha256:...",
     "program": {...}, "spans": {...}, "docs": {...}}

Reading trusts nothing. What it returns is a program that `encode` could have written, under the
hash that names it; everything else is a `ProgramFormatError` that says where.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from afl.ir.digest import FORMAT, canonical_text, hash_of, program_hash, semantic_part
from afl.ir.errors import ProgramFormatError, ProgramHashError, ProgramVersionError
from afl.ir.model import FORMAT_VERSION, Program, SourceSpan
from afl.ir.place import MAX_NESTING, ROOT, Place, shown
from afl.ir.shapes import Record, Scalar, Shape, declaration_shape, semantic_fields
from afl.ir.values import Json, check_members, check_scalar, read, read_members, write

_MEMBERS = ("format", "version", "hash", "program", "spans", "docs")
_NEEDED = ("version", "hash", "program")
_SPAN = Record(SourceSpan)
_DOC = Scalar(frozenset({str}))


def encode(program: Program) -> dict[str, Json]:
    """The stored form of a program, as a JSON value."""
    result = semantic_part(program)
    result["hash"] = hash_of(result)
    for name, table in (("spans", program.spans), ("docs", program.docs)):
        if table:
            result[name] = _write_table(table, ROOT.child(name))
    return result


def decode(data: object) -> Program:
    """The program that a JSON value stores. Raises `ProgramFormatError` if it stores none."""
    members = read_members(data, ROOT)
    _check_envelope(members)
    program = _read_program(members)
    _check_hash(program, members["hash"])
    return program


def dumps(program: Program) -> str:
    """The stored form of a program, as canonical JSON text. Store it as UTF-8."""
    return canonical_text(encode(program))


def loads(text: str | bytes) -> Program:
    """The program that a JSON text stores. Raises `ProgramFormatError` if it stores none."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ROOT.wrong(f"this nests deeper than {MAX_NESTING} levels") from error
    except ValueError as error:
        raise ROOT.wrong(f"this is not JSON in UTF-8: {error}") from error
    return decode(data)


def _check_envelope(members: dict[str, object]) -> None:
    """Format and version come first: what a newer version holds is not ours to judge."""
    if members.get("format") != FORMAT:
        found = shown(members["format"]) if "format" in members else "missing"
        raise ROOT.child("format").wrong(f"a stored program says '{FORMAT}' here; this is {found}")
    for name in _NEEDED:
        if name not in members:
            raise ROOT.wrong(f"'{name}' is missing")
    version = members["version"]
    place = ROOT.child("version")
    if type(version) is not int or version < 1:
        raise place.wrong(f"a version is 1 or more, not {shown(version)}")
    if version > FORMAT_VERSION:
        raise ProgramVersionError(
            f"this program has version {shown(version)}, and this AgentFlow reads up to"
            f" {FORMAT_VERSION}; upgrade AgentFlow, or compile the source again with this one",
            path=str(place),
        )
    check_members(members, _MEMBERS, ROOT)


def _read_program(members: dict[str, object]) -> Program:
    place = ROOT.child("program")
    body = read_members(members["program"], place)
    parts = semantic_fields()
    check_members(body, parts, place)
    values: dict[str, Any] = {}
    for name in parts:
        values[name] = read(declaration_shape(name), body.get(name, []), place.child(name))
        _check_order([declaration.name for declaration in values[name]], place.child(name))
    for name, shape in (("spans", _SPAN), ("docs", _DOC)):
        values[name] = _read_table(shape, members.get(name, {}), ROOT.child(name))
    return Program(**values)


def _check_order(names: list[str], place: Place) -> None:
    for index in range(1, len(names)):
        before, name = names[index - 1], names[index]
        if name == before:
            raise place.child(index).wrong(f"{shown(name)} is declared twice")
        if name < before:
            raise place.child(index).wrong(
                f"declarations are sorted by name, and {shown(name)} comes before {shown(before)}"
            )


def _check_hash(program: Program, given: object) -> None:
    place = ROOT.child("hash")
    if not isinstance(given, str):
        raise place.wrong(f"a string belongs here, not {shown(given)}")
    real = program_hash(program)
    if given != real:
        raise ProgramHashError(
            f"the program has the hash {real}: it was changed after it was stored;"
            " compile its source again",
            path=str(place),
        )


def _write_table(table: Mapping[str, object], place: Place) -> dict[str, Json]:
    result = {}
    for key, value in table.items():
        check_scalar(key, place)
        result[key] = write(value, place.child(key))
    return result


def _read_table(shape: Shape, data: object, place: Place) -> Mapping[str, Any]:
    table = {}
    for key, value in read_members(data, place).items():
        inner = place.child(key)
        check_scalar(key, inner)
        table[key] = read(shape, value, inner)
    return MappingProxyType(table)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ProgramFormatError(f"an object has the member {shown(twice)} twice")
    return members


def _refuse_constant(word: str) -> NoReturn:
    raise ProgramFormatError(f"a number must be finite, not {word}")
