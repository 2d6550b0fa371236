"""Diagnostics to render: short ways to write one, and a strategy for all of them."""

from __future__ import annotations

from hypothesis import strategies as st

from afl.lang.diagnostics.codes import CODES
from afl.lang.diagnostics.model import (
    Applicability,
    Diagnostic,
    Edit,
    Label,
    Severity,
    Suggestion,
)
from afl.lang.source import Source, Span


def at(source: Source, part: str) -> Span:
    """The span of the first place where a part stands in a source."""
    start = source.text.index(part)
    return source.span(start, start + len(part))


def after(span: Span) -> Span:
    """The empty span just behind another."""
    return span.source.span(span.end, span.end)


def error(
    primary: Label,
    *secondary: Label,
    notes: tuple[str, ...] = (),
    suggestions: tuple[Suggestion, ...] = (),
) -> Diagnostic:
    message = "something is wrong"
    return Diagnostic("AFL2001", Severity.ERROR, message, primary, secondary, notes, suggestions)


def warning(primary: Label) -> Diagnostic:
    return Diagnostic("AFL3009", Severity.WARNING, "something is odd", primary)


def misspelt_argument() -> Diagnostic:
    """The example of the documentation: two labels in a file, a note and a suggestion."""
    source = Source(
        "flows/close.afl",
        "namespace billing {\n"
        "  schema Receipt { id: String }\n"
        "  event facet Charge(amount: Money, card: Card) => (receipt: Receipt)\n"
        + "\n" * 10
        + "  c = billing.Charge(ammount = i.total, card = i.card)\n}\n",
    )
    wrong = at(source, "ammount")
    return Diagnostic(
        "AFL2001",
        Severity.ERROR,
        "facet `billing.Charge` has no parameter `ammount`",
        Label(wrong, "unknown parameter"),
        (Label(at(source, "amount"), "did you mean this one?"),),
        ("its parameters are `amount` and `card`",),
        (Suggestion("rename it to `amount`", (Edit(wrong, "amount"),), Applicability.SAFE),),
    )


_TEXT = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cs", "Cc", "Cf", "Mn", "Zl", "Zp"]),
        st.sampled_from('ab {}"\t\n\r日\u0301'),
    ),
    max_size=300,
)


@st.composite
def diagnostics(draw: st.DrawFn) -> Diagnostic:
    """Any diagnostic over any texts, with spans that need not even lie inside them."""
    sources = [Source(draw(_TEXT), draw(_TEXT)) for _ in range(draw(st.integers(1, 3)))]

    def span() -> Span:
        source = draw(st.sampled_from(sources))
        reach = st.integers(-3, len(source.text) + 3)
        return source.span(draw(reach), draw(reach))

    def label() -> Label:
        return Label(span(), draw(_TEXT))

    def suggestion() -> Suggestion:
        edits = tuple(Edit(span(), draw(_TEXT)) for _ in range(draw(st.integers(0, 3))))
        return Suggestion(draw(_TEXT), edits, draw(st.sampled_from(Applicability)))

    code = draw(st.sampled_from(sorted(CODES)))
    return Diagnostic(
        code,
        CODES[code].severity,
        draw(_TEXT),
        label(),
        tuple(label() for _ in range(draw(st.integers(0, 4)))),
        tuple(draw(st.lists(_TEXT, max_size=2))),
        tuple(suggestion() for _ in range(draw(st.integers(0, 2)))),
    )
