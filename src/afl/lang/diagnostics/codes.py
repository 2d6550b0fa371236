"""Every diagnostic code, with its title and severity. A code never changes its meaning.

Each has a page of the same name in `pages/`, whose examples are its tests.
"""

from __future__ import annotations

from dataclasses import dataclass

from afl.lang.diagnostics.model import Severity


@dataclass(frozen=True, slots=True)
class Code:
    id: str
    title: str
    severity: Severity


_ERRORS = {
    # 00xx: characters and words
    "AFL0001": "text is not valid Unicode",
    "AFL0002": "unexpected character",
    "AFL0003": "string without an end",
    "AFL0004": "comment without an end",
    "AFL0005": "unknown escape in a string",
    "AFL0006": "malformed number",
    "AFL0007": "string in single quotes",
    "AFL0008": "comment that starts with #",
    "AFL0009": "script block without an end",
    "AFL0010": "number out of range",
    "AFL0011": "file that is too large",
    # 01xx: syntax
    "AFL0101": "unexpected word or sign",
    "AFL0102": "missing comma",
    "AFL0103": "bracket that is never closed",
    "AFL0104": "reserved word used as a name",
    "AFL0105": "argument without a name",
    "AFL0106": "nested too deeply",
    "AFL0107": "chained comparison",
    "AFL0108": "declaration outside a namespace",
    "AFL0109": "namespace inside a namespace",
    "AFL0110": "too many errors",
    "AFL0111": "unknown entry in a prompt block",
    "AFL0112": "prompt entry given twice",
    # 10xx: names
    "AFL1001": "unknown namespace",
    "AFL1004": "name declared twice",
    "AFL1005": "unknown facet",
    "AFL1006": "ambiguous name",
    "AFL1007": "unknown type",
    "AFL1008": "name that cannot be called",
    "AFL1009": "parameter, return, field or member named twice",
    "AFL1010": "step name used twice",
    "AFL1011": "unknown step",
    "AFL1012": "unknown input",
    "AFL1013": "unknown attribute of a step",
    "AFL1014": "unknown field",
    "AFL1015": "step that refers to itself",
    "AFL1016": "step that cannot be seen from here",
    "AFL1017": "name that hides an input",
    "AFL1018": "name that hides a built-in policy",
    "AFL1019": "unknown enum member",
    "AFL1020": "reserved namespace",
    "AFL1021": "input read without `$`",
    # 20xx: calls and types
    "AFL2001": "unknown argument",
    "AFL2002": "missing argument",
    "AFL2003": "argument given twice",
    "AFL2004": "value of the wrong type",
    "AFL2005": "value that may be null",
    "AFL2006": "operator with operands it cannot take",
    "AFL2007": "condition that is not a Boolean",
    "AFL2008": "foreach over something that is not a list",
    "AFL2009": "index that does not fit",
    "AFL2010": "value without fields",
    "AFL2011": "comparison of unrelated types",
    "AFL2012": "list of mixed types",
    "AFL2013": "map key given twice",
    "AFL2014": "value that is not constant",
    "AFL2015": "map key that is not a String",
    "AFL2016": "step used as a value",
    "AFL2017": "step of another facet",
    "AFL2018": "facet type in the wrong place",
    "AFL2019": "schema that contains itself",
    "AFL2022": "limit below one",
    "AFL2023": "constant that cannot be computed",
    # 30xx: blocks and data flow
    "AFL3001": "yield to something else than its owner",
    "AFL3002": "yield of an unknown return",
    "AFL3003": "return that no path yields",
    "AFL3004": "return that some path does not yield",
    "AFL3005": "return yielded twice",
    "AFL3006": "single value yielded from foreach",
    "AFL3007": "steps that wait for each other",
    "AFL3008": "recursion without a bound",
    "AFL3011": "when without a default case",
    "AFL3012": "default case that is not the last",
    "AFL3013": "facet without a body called for its returns",
    "AFL3014": "ambiguous yield target",
    "AFL3015": "return read before it exists",
    "AFL3016": "workflow without a body",
    "AFL3018": "error read outside a catch",
    # 40xx: policies, prompts, scripts, schedules
    "AFL4001": "policy in the wrong place",
    "AFL4002": "policy given twice",
    "AFL4003": "policy with an alias",
    "AFL4004": "retry of an irreversible facet",
    "AFL4005": "cache of a facet that is not pure",
    "AFL4006": "policy value out of range",
    "AFL4007": "alias that is already taken",
    "AFL4008": "mixin that does not fit the facet",
    "AFL4009": "mixin that is not a facet",
    "AFL4010": "prompt on something else than an event facet",
    "AFL4011": "prompt without a template",
    "AFL4012": "placeholder that names no parameter",
    "AFL4013": "malformed placeholder",
    "AFL4014": "tool that is not an event facet",
    "AFL4015": "malformed MCP tool",
    "AFL4016": "script that is not valid Python",
    "AFL4017": "script result that is not declared",
    "AFL4018": "script without code",
    "AFL4019": "unknown script language",
    "AFL4020": "second implicit for one facet",
    "AFL4021": "malformed cron expression",
    "AFL4022": "malformed time zone",
    "AFL4023": "schedule of something else than a workflow",
    "AFL4024": "check facet that does not fit",
    "AFL4027": "event facet with two servers",
    "AFL4028": "schema value with mixins",
    "AFL4029": "malformed time in a schedule",
    "AFL4030": "unknown policy of a schedule",
    # 50xx: pipelines
    "AFL5001": "text that is not YAML",
    "AFL5002": "unknown key in a pipeline",
    "AFL5003": "key given twice in a pipeline",
    "AFL5004": "missing key in a pipeline",
    "AFL5005": "value of the wrong kind in a pipeline",
    "AFL5006": "unknown kind of task",
    "AFL5007": "dependency on an unknown task",
    "AFL5008": "tasks that wait for each other",
    "AFL5010": "name that cannot be used",
    "AFL5011": "malformed start time",
    "AFL5012": "pipeline that is too large",
    "AFL5013": "cron expression that means something else",
}

_WARNINGS = {
    "AFL1002": "use that is not needed",
    "AFL1003": "use given twice",
    "AFL2020": "comparison with null that is always the same",
    "AFL2021": "default for a value that is never null",
    "AFL3009": "step whose result nobody reads",
    "AFL3010": "code that can never run",
    "AFL3019": "after that adds no order",
    "AFL4025": "tool listed twice",
    "AFL5009": "dependency given twice",
    "AFL9001": "doc tag that names nothing",
    "AFL9002": "doc comment that documents nothing",
}

CODES: dict[str, Code] = dict(
    sorted(
        [(id, Code(id, title, Severity.ERROR)) for id, title in _ERRORS.items()]
        + [(id, Code(id, title, Severity.WARNING)) for id, title in _WARNINGS.items()]
    )
)
