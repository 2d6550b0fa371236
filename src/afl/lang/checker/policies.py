"""Policies: where each may stand, which values make sense, and which do not go together."""

from __future__ import annotations

from collections.abc import Mapping

from afl.ir import model as ir
from afl.ir.types import BOOLEAN, DURATION, STRING
from afl.lang import tree
from afl.lang.checker.constants import number
from afl.lang.checker.lookup import find
from afl.lang.checker.scope import Context, Scope
from afl.lang.checker.symbols import FacetSymbol
from afl.lang.checker.types import bare, fits, may_be_null, show
from afl.lang.diagnostics.model import Label
from afl.lang.diagnostics.reporter import advise, replace

_EVENT = frozenset({"event"})
_WORK = frozenset({"event", "workflow"})
_ALL = frozenset({"event", "workflow", "facet"})

#: The kinds of facet that a policy can be given to.
_KINDS: dict[str, frozenset[str]] = {
    "Retry": _EVENT,
    "Timeout": _ALL,
    "Queue": _WORK,
    "Priority": _WORK,
    "Concurrency": _WORK,
    "RateLimit": _EVENT,
    "Breaker": _EVENT,
    "Budget": _ALL,
    "Cache": _EVENT,
    "Effect": _EVENT,
    "Human": _EVENT,
    "Placement": _WORK,
    "FailFast": frozenset({"workflow", "facet"}),
}
#: Policies that say what a facet is, so that a single call cannot change them.
_SIGNATURE_ONLY = frozenset({"Effect", "Human", "FailFast"})

_KIND_WORDS = {"event": "event facets", "workflow": "workflows", "facet": "facets"}

#: Lowest and highest sensible value of a policy's argument.
_RANGES: dict[tuple[str, str], tuple[float, float | None]] = {
    ("Retry", "max_attempts"): (1, 1000),
    ("Retry", "delay"): (0, None),
    ("Retry", "backoff"): (1, None),
    ("Retry", "max_delay"): (0, None),
    ("Timeout", "hours"): (0, None),
    ("Timeout", "minutes"): (0, None),
    ("Timeout", "seconds"): (0, None),
    ("Timeout", "ms"): (0, None),
    ("Priority", "level"): (0, 9),
    ("Concurrency", "max"): (1, None),
    ("RateLimit", "max"): (1, None),
    ("RateLimit", "per"): (1, None),
    ("Breaker", "failures"): (1, 100),
    ("Breaker", "window"): (1000, 86_400_000),
    ("Breaker", "cooldown"): (1000, 3_600_000),
    ("Breaker", "probes"): (1, 20),
    ("Breaker", "slow"): (1, None),
    ("Budget", "usd"): (0, None),
    ("Budget", "tokens"): (1, None),
    ("Cache", "ttl"): (1, None),
    ("Human", "deadline"): (1, None),
}
_EFFECTS = frozenset({"pure", "idempotent", "keyed", "irreversible"})
#: The effect of a facet whose `Effect` has no kind that exists; that was reported.
UNREADABLE = ""

#: Policies of which at least one argument must be given, and be more than nothing.
_NEEDS_ONE = frozenset({"Timeout", "Budget"})


def policy_fits(
    context: Context,
    node: tree.Mixin,
    policy: FacetSymbol,
    owner: FacetSymbol | None,
    given: dict[str, tree.Mixin],
    *,
    signature: bool,
) -> bool:
    """Whether a policy may stand where it does. `given` holds those before it."""
    name = policy.name
    span = context.span(node.call.target)
    if name in given:
        context.reporter.report(
            "AFL4002",
            span,
            f"the policy `{name}` is given twice",
            "second one",
            secondary=[Label(context.span(given[name].call.target), "first one")],
        )
        return False
    given[name] = node
    if node.alias is not None:
        context.reporter.report(
            "AFL4003",
            context.span(node.alias),
            f"`{name}` is a policy and takes no alias",
            "no alias here",
            suggestions=[
                replace(
                    context.unit.source.span(node.call.end, node.alias.end), "", "remove the alias"
                )
            ],
        )
    if owner is None:
        return True
    kinds = _KINDS[name]
    if owner.kind not in kinds:
        allowed = " and ".join(_KIND_WORDS[kind] for kind in sorted(kinds))
        context.reporter.report(
            "AFL4001",
            span,
            f"`{name}` is a policy for {allowed}",
            f"`{owner.name}` is {'a workflow' if owner.kind == 'workflow' else 'a facet'}"
            if owner.kind != "event"
            else f"`{owner.name}` is an event facet",
            suggestions=[advise("give it to the event facets that do the work")]
            if kinds == _EVENT
            else [],
        )
        return False
    if name in _SIGNATURE_ONLY and not signature:
        context.reporter.report(
            "AFL4001",
            span,
            f"`{name}` belongs to the declaration of `{owner.name}`, not to a call of it",
            "not here",
            secondary=[Label(owner.unit.span(owner.node.name), "declared here")],
            suggestions=[advise(f"write `with {name}(...)` behind the signature")],
        )
        return False
    return True


def argument_scope(scope: Scope, policy: FacetSymbol, name: str) -> Scope:
    """Policies are constant, so that they can be shown and checked ahead; only keys depend on the
    run."""
    if name == "key":
        return scope
    return Scope(None, scope.unit, constant=f"`{name}` of the policy `{policy.name}`")


def check_values(
    context: Context, node: tree.Mixin, policy: FacetSymbol, args: Mapping[str, ir.Argument]
) -> None:
    """Reports values of a policy that make no sense."""
    values = {name: number(argument.value) for name, argument in args.items()}
    places = {arg.name.text: arg.value for arg in node.call.args}
    for name, value in values.items():
        bounds = _RANGES.get((policy.name, name))
        if bounds is None or value is None:
            continue
        low, high = bounds
        if value < low or (high is not None and value > high):
            unit = "ms" if bare(policy.params[name].type) == DURATION else ""
            wanted = f"at least {low:g}{unit}"
            if high is not None:
                wanted = f"{low:.0f}{unit} to {high:.0f}{unit}"
            context.reporter.report(
                "AFL4006",
                context.span(places[name]),
                f"`{name}` of `{policy.name}` must be {wanted}",
                "out of range",
            )
    if policy.name in _NEEDS_ONE and node.call.complete and _says_nothing(node, args):
        names = ", ".join(f"`{name}`" for name in policy.params)
        context.reporter.report(
            "AFL4006",
            context.span(node.call),
            f"`{policy.name}` needs at least one of {names}, and more than nothing",
            "says nothing",
        )
    for name, what in (("name", "a queue"), ("group", "a group")):
        if name in args and args[name].value == ir.Literal("", STRING):
            context.reporter.report(
                "AFL4006", context.span(places[name]), f"{what} needs a name", "empty"
            )


def _says_nothing(node: tree.Mixin, args: Mapping[str, ir.Argument]) -> bool:
    """Whether every argument is nothing. One that was refused may have been meant to be more."""
    if any(arg.name.text not in args for arg in node.call.args):
        return False
    written = {arg.name.text: arg.value for arg in node.call.args}
    return all(
        number(argument.value) == 0 or isinstance(written[name], tree.NullLit)
        for name, argument in args.items()
    )


def check_effect(
    context: Context, scope: Scope, facet: FacetSymbol, node: tree.Arg
) -> ir.Argument | None:
    """`check = Facet` of an Effect: the facet that tells whether an irreversible one was done."""
    value = node.value
    if not isinstance(value, tree.NameRef):
        context.reporter.report(
            "AFL4024",
            context.span(value),
            "`check` of `Effect` is the name of an event facet",
            "not a name",
        )
        return None
    name = tree.Name(value.start, value.end, ".".join(part.text for part in value.path))
    symbol = find(context.index, scope.unit, name, "AFL1005", "facet")
    if symbol is None:
        return None
    problem = _check_problem(symbol, facet)
    if problem:
        context.reporter.report(
            "AFL4024",
            context.span(value),
            f"`{symbol.name}` cannot check `{facet.name}`: {problem}",
            "does not fit",
            notes=[
                "a check facet is an event facet that returns `done: Boolean` and takes only "
                "parameters that the checked facet has"
            ],
        )
        return None
    return ir.Argument("check", ir.Literal(symbol.qname, None))


def _check_problem(symbol: object, facet: FacetSymbol) -> str:
    if symbol is facet:
        return "it would check itself"
    if not isinstance(symbol, FacetSymbol) or symbol.kind != "event":
        return "it is not an event facet"
    done = symbol.returns.get("done")
    if done is None:
        return "it does not return `done`"
    if not fits(done.type, BOOLEAN):
        return f"its `done` is `{show(done.type)}`, not `Boolean`"
    for name, param in symbol.params.items():
        given = facet.params.get(name)
        if given is not None and not fits(given.type, param.type):
            return f"its parameter `{name}` has another type"
        if given is None and not param.has_default and not may_be_null(param.type):
            return f"`{facet.name}` has no parameter `{name}`"
    return ""


def check_clashes(context: Context, facet: FacetSymbol, policies: Mapping[str, tree.Mixin]) -> None:
    """Reports policies of a signature that contradict the facet's effect, or each other."""
    if facet.kind != "event":
        return
    _check_against_effect(context, facet, policies)
    _check_server(context, facet, policies, is_human="Human" in policies)
    served = [
        word
        for word, present in (
            ("a person (`Human`)", "Human" in policies),
            ("a prompt", facet.node.prompt is not None),
            ("a script", facet.node.script is not None),
        )
        if present
    ]
    if len(served) > 1:
        context.reporter.report(
            "AFL4027",
            context.span(facet.node.name),
            f"`{facet.name}` is served by {' and by '.join(served)}",
            "one server only",
            suggestions=[advise("split it into two facets")],
        )


def _check_against_effect(
    context: Context, facet: FacetSymbol, policies: Mapping[str, tree.Mixin]
) -> None:
    retry = policies.get("Retry")
    if retry is not None and facet.effect == "irreversible" and _tries_again(retry):
        context.reporter.report(
            "AFL4004",
            context.span(retry.call.target),
            f"`{facet.name}` is irreversible and must not be tried again by itself",
            "clashes with the effect",
            secondary=[Label(facet.unit.span(facet.node.name), "declared irreversible")],
            notes=["after a failure it waits for a person, or for its check facet to tell"],
        )
    cache = policies.get("Cache")
    if cache is not None and facet.effect not in ("pure", UNREADABLE):
        context.reporter.report(
            "AFL4005",
            context.span(cache.call.target),
            f"`{facet.name}` is not pure, so a cached result would hide its effect",
            f"the effect is `{facet.effect}`",
            suggestions=[
                advise("if it only computes its result, declare `with Effect(kind = pure)`")
            ],
        )


def _check_server(
    context: Context, facet: FacetSymbol, policies: Mapping[str, tree.Mixin], *, is_human: bool
) -> None:
    """A breaker stands before handlers. People need none, and models have one by themselves."""
    breaker = policies.get("Breaker")
    if breaker is not None and (is_human or facet.node.prompt is not None):
        server = "a person" if is_human else "a model"
        context.reporter.report(
            "AFL4001",
            context.span(breaker.call.target),
            "`Breaker` is a policy for event facets that handlers serve",
            f"`{facet.name}` is served by {server}",
            suggestions=[]
            if is_human
            else [advise("leave it out: every provider of models has one")],
        )


def check_call_clashes(
    context: Context, callee: FacetSymbol, policies: Mapping[str, tree.Mixin]
) -> None:
    """The same for policies given at a call."""
    if callee.kind == "event":
        _check_against_effect(context, callee, policies)
        named = {mixin.call.target.text.rpartition(".")[2] for mixin in callee.node.mixins}
        _check_server(context, callee, policies, is_human="Human" in named)


def _tries_again(retry: tree.Mixin) -> bool:
    attempts = [arg.value for arg in retry.call.args if arg.name.text == "max_attempts"]
    return not any(isinstance(value, tree.IntLit) and value.value == 1 for value in attempts)


def declared_effect(facet: FacetSymbol) -> str:
    """The effect that a signature declares, read off the tree: others ask before it is checked."""
    for mixin in facet.node.mixins:
        if mixin.call.target.text in ("Effect", "afl.Effect"):
            for arg in mixin.call.args:
                if arg.name.text == "kind" and isinstance(arg.value, tree.NameRef):
                    kind = arg.value.path[0].text
                    return kind if kind in _EFFECTS else UNREADABLE
            return UNREADABLE
    return "keyed"
