"""What a condition tells about null."""

from __future__ import annotations

from afl.lang import tree
from afl.lang.checker.references import ref_key
from afl.lang.checker.scope import RefKey

NO_FACTS: frozenset[RefKey] = frozenset()


def facts(node: tree.Expr) -> tuple[frozenset[RefKey], frozenset[RefKey]]:
    """References that are not null when the condition is true, and those when it is false."""
    match node:
        case tree.Paren(inner=inner):
            return facts(inner)
        case tree.Unary(op="!", operand=operand):
            when_true, when_false = facts(operand)
            return when_false, when_true
        case tree.Compare(op="!=" | "==" as op, left=left, right=right):
            key = _tested(left, right)
            known = frozenset({key}) if key else NO_FACTS
            return (known, NO_FACTS) if op == "!=" else (NO_FACTS, known)
        case tree.Chain(first=first, rest=rest) if rest[0].op in ("&&", "||"):
            parts = [facts(first), *(facts(link.operand) for link in rest)]
            if rest[0].op == "&&":
                return frozenset().union(*(true for true, _ in parts)), NO_FACTS
            return NO_FACTS, frozenset().union(*(false for _, false in parts))
        case _:
            return NO_FACTS, NO_FACTS


def _tested(left: tree.Expr, right: tree.Expr) -> RefKey | None:
    if isinstance(right, tree.NullLit):
        return ref_key(left)
    if isinstance(left, tree.NullLit):
        return ref_key(right)
    return None
