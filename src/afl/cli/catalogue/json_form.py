"""The catalogue as JSON.

{"version": 1, "namespaces": [{"name", "doc", "workflows", "event_facets", "facets", "schemas",
                               "enums", "schedules"}]}

Every declaration has its full `name`, its `doc`, where it is (`declared_in`) and what uses it
(`used_by`). `docs/reference/schemas/catalogue.schema.json` has the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afl.cli.catalogue.model import Entry, NamespacePage
from afl.cli.unparse import call_text, expression_text, signature_text, type_text
from afl.ir import model as ir


def to_json(catalogue: Sequence[NamespacePage]) -> dict[str, object]:
    """A value that `json` can write."""
    return {"version": 1, "namespaces": [_namespace(page) for page in catalogue]}


def _namespace(page: NamespacePage) -> dict[str, object]:
    return {
        "name": page.name,
        "doc": page.doc.text,
        **{
            title.lower().replace(" ", "_"): [_entry(entry) for entry in entries]
            for title, entries in page.sections()
        },
    }


def _entry(entry: Entry) -> dict[str, object]:
    result: dict[str, object] = {
        "name": entry.name,
        "doc": entry.doc.text,
        "declared_in": entry.place,
        "used_by": list(entry.callers),
    }
    match entry.declared:
        case ir.Facet() as facet:
            result |= {
                "signature": signature_text(facet),
                "params": _params(facet.params, entry.doc.params),
                "returns": _params(facet.returns, entry.doc.returns),
                "policies": [call_text(policy.name, policy.args) for policy in facet.policies],
            }
        case ir.Schema() as schema:
            result["fields"] = _params(schema.fields, entry.doc.params)
        case ir.Enum() as enum:
            result["members"] = list(enum.members)
        case ir.Schedule() as schedule:
            result |= {
                "workflow": schedule.workflow,
                "cron": schedule.cron,
                "every_ms": schedule.every_ms,
                "at": schedule.at,
                "zone": schedule.zone,
                "start": schedule.start,
                "end": schedule.end,
                "jitter_ms": schedule.jitter_ms,
                "overlap": schedule.overlap,
                "catch_up": schedule.catch_up,
            }
    return result


def _params(params: tuple[ir.Param, ...], docs: Mapping[str, str]) -> list[dict[str, object]]:
    return [
        {
            "name": param.name,
            "type": type_text(param.type),
            "default": None if param.default is None else expression_text(param.default),
            "doc": docs.get(param.name, ""),
        }
        for param in params
    ]
