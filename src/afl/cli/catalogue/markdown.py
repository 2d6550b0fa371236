"""The catalogue as Markdown: an index, and a page for each namespace.

Links lead to `<a id>` marks with full names: two declarations never share one, and they do not
depend on how a viewer names its headings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from afl.cli.catalogue.model import Entry, NamespacePage
from afl.cli.unparse import (
    call_text,
    expression_text,
    namespace_of,
    params_text,
    schedule_text,
    short_name,
    signature_text,
    type_parts,
)
from afl.ir import model as ir
from afl.ir.types import Type
from afl.lang.formatter import format_source
from afl.lang.source import Source

INDEX = "index.md"
_TITLE = "Catalogue"


def page_name(namespace: str) -> str:
    """The file of a namespace."""
    return f"{namespace}.md"


def to_pages(catalogue: Sequence[NamespacePage]) -> dict[str, str]:
    """The text of each file, by its name."""
    known = _names(catalogue)
    writer = _Writer(known, separate=True)
    pages = {INDEX: "\n".join([f"# {_TITLE}", "", *writer.index(catalogue)])}
    for page in catalogue:
        pages[page_name(page.name)] = "\n".join(writer.page(page, 1))
    return {name: f"{text.rstrip()}\n" for name, text in pages.items()}


def to_document(catalogue: Sequence[NamespacePage]) -> str:
    """Everything in one text."""
    writer = _Writer(_names(catalogue), separate=False)
    lines = [f"# {_TITLE}", "", *writer.index(catalogue)]
    for page in catalogue:
        lines += writer.page(page, 2)
    return "\n".join(lines).rstrip() + "\n"


def _names(catalogue: Sequence[NamespacePage]) -> set[str]:
    return {entry.name for page in catalogue for _, entries in page.sections() for entry in entries}


class _Writer:
    def __init__(self, known: set[str], *, separate: bool) -> None:
        self._known = known
        self._separate = separate

    def index(self, catalogue: Sequence[NamespacePage]) -> Iterator[str]:
        if not catalogue:
            yield "Nothing is declared."
            return
        yield "| namespace | what it is for |"
        yield "|---|---|"
        for page in catalogue:
            target = page_name(page.name) if self._separate else f"#{page.name}"
            yield f"| [{page.name}]({target}) | {_cell(page.doc.summary)} |"
        yield ""

    def page(self, page: NamespacePage, level: int) -> Iterator[str]:
        yield f'<a id="{page.name}"></a>'
        yield ""
        yield f"{'#' * level} namespace {page.name}"
        yield ""
        yield from _prose(page.doc.text)
        for title, entries in page.sections():
            if entries:
                yield f"{'#' * (level + 1)} {title}"
                yield ""
            for entry in entries:
                yield from self._entry(entry, level + 2)

    def _entry(self, entry: Entry, level: int) -> Iterator[str]:
        namespace, _, name = entry.name.rpartition(".")
        yield f'<a id="{entry.name}"></a>'
        yield ""
        yield f"{'#' * level} {name}"
        yield ""
        yield from _prose(entry.doc.text)
        yield "```afl"
        yield _declaration(entry.declared)
        yield "```"
        yield ""
        match entry.declared:
            case ir.Facet() as facet:
                yield from self._table("parameter", facet.params, entry.doc.params, namespace)
                yield from self._table("return", facet.returns, entry.doc.returns, namespace)
                yield from self._facts(facet, namespace)
            case ir.Schema() as schema:
                yield from self._table("field", schema.fields, entry.doc.params, namespace)
            case ir.Schedule() as schedule:
                yield f"Starts {self._link(schedule.workflow, namespace)}."
                yield ""
        if entry.callers:
            links = ", ".join(self._link(name, namespace) for name in entry.callers)
            yield f"Used by {links}."
            yield ""
        if entry.place:
            yield f"Declared in `{entry.place}`."
            yield ""

    def _table(
        self, what: str, params: tuple[ir.Param, ...], docs: Mapping[str, str], namespace: str
    ) -> Iterator[str]:
        """A row for each parameter; a column that would be empty is left out."""
        if not params:
            return
        columns = {
            what: [f"`{param.name}`" for param in params],
            "type": [self._type(param.type, namespace) for param in params],
            "default": [_default(param, namespace) for param in params],
            "meaning": [_cell(docs.get(param.name, "")) for param in params],
        }
        columns = {title: cells for title, cells in columns.items() if any(cells)}
        yield f"| {' | '.join(columns)} |"
        yield f"|{'---|' * len(columns)}"
        for row in zip(*columns.values(), strict=True):
            yield f"| {' | '.join(row)} |"
        yield ""

    def _facts(self, facet: ir.Facet, namespace: str) -> Iterator[str]:
        if facet.policies:
            calls = ", ".join(
                _code(call_text(policy.name, policy.args, namespace)) for policy in facet.policies
            )
            yield f"Policies: {calls}."
            yield ""
        if facet.mixins:
            links = ", ".join(self._link(mixin.facet, namespace) for mixin in facet.mixins)
            yield f"Mixes in {links}."
            yield ""
        if facet.prompt is not None:
            model = f" ({_code(facet.prompt.model)})" if facet.prompt.model else ""
            yield f"Served by a prompt{model}."
            yield ""
            tools = [
                self._link(tool.name, namespace) if tool.kind == "facet" else f"`mcp:{tool.name}`"
                for tool in facet.prompt.tools
            ]
            if tools:
                yield f"Its tools are {', '.join(tools)}."
                yield ""
        elif facet.kind == "event" and facet.script is not None:
            yield "Served by a script."
            yield ""

    def _type(self, type: Type, namespace: str) -> str:
        return "".join(
            _plain(part) if isinstance(part, str) else self._link(part.name, namespace)
            for part in type_parts(type)
        )

    def _link(self, name: str, namespace: str) -> str:
        label = f"`{short_name(name, namespace)}`"
        if name not in self._known:
            return label
        owner = namespace_of(name)
        page = page_name(owner) if self._separate and owner != namespace else ""
        return f"[{label}]({page}#{name})"


def _declaration(declared: ir.Facet | ir.Schema | ir.Enum | ir.Schedule) -> str:
    """The signature in the layout of the formatter, which needs a namespace around it."""
    last = declared.name.rpartition(".")[2]
    match declared:
        case ir.Facet():
            text = signature_text(declared)
        case ir.Schema(_, fields):
            text = f"schema {last} {{ {params_text(fields, namespace_of(declared.name))} }}"
        case ir.Enum(_, members):
            text = f"enum {last} {{ {', '.join(members)} }}"
        case ir.Schedule():
            text = schedule_text(declared)
    formatted = format_source(Source("signature", f"namespace x {{\n{text}\n}}\n")).text
    if formatted is None:
        return text
    inner = formatted.splitlines()[1:-1]
    return "\n".join(line.removeprefix("  ") for line in inner)


def _default(param: ir.Param, namespace: str) -> str:
    return "" if param.default is None else _code(expression_text(param.default, namespace))


def _prose(text: str) -> Iterator[str]:
    """What the author wrote is Markdown already."""
    if text:
        yield text
        yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str) -> str:
    """A code span in a table or a sentence; a text with backticks needs more of them around it."""
    text = _cell(text)
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _plain(text: str) -> str:
    """Part of a type outside of a code span, where brackets would make a link."""
    return "".join(f"\\{char}" if char in "[]{}" else char for char in text)
