"""What sources declare, namespace by namespace, with its doc comments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from afl.cli.catalogue.callers import callers
from afl.cli.unparse import namespace_of
from afl.ir import model as ir
from afl.ir.doc_comments import DocComment, read_doc
from afl.lang.tree import File

Declared = ir.Facet | ir.Schema | ir.Enum | ir.Schedule


@dataclass(frozen=True, slots=True)
class Entry:
    """One declaration. `callers` are the full names of what uses it, `place` is `file:line`."""

    declared: Declared
    doc: DocComment
    callers: tuple[str, ...]
    place: str

    @property
    def name(self) -> str:
        return self.declared.name


@dataclass(frozen=True, slots=True)
class NamespacePage:
    """The declarations of a namespace by kind, each list sorted by name."""

    name: str
    doc: DocComment
    workflows: tuple[Entry, ...]
    events: tuple[Entry, ...]
    facets: tuple[Entry, ...]
    schemas: tuple[Entry, ...]
    enums: tuple[Entry, ...]
    schedules: tuple[Entry, ...]

    def sections(self) -> tuple[tuple[str, tuple[Entry, ...]], ...]:
        """The titles of the kinds with their entries, in the order in which they are shown."""
        return (
            ("Workflows", self.workflows),
            ("Event facets", self.events),
            ("Facets", self.facets),
            ("Schemas", self.schemas),
            ("Enums", self.enums),
            ("Schedules", self.schedules),
        )


def build_catalogue(program: ir.Program, files: Sequence[File]) -> tuple[NamespacePage, ...]:
    """A page for every namespace that is opened in the sources, sorted by name."""
    docs = _namespace_docs(files)
    used = callers(program)

    def entries(declared: Sequence[Declared], namespace: str) -> tuple[Entry, ...]:
        return tuple(
            Entry(
                each,
                read_doc(program.docs.get(each.name, "")),
                used.get(each.name, ()),
                _place(program, each.name),
            )
            for each in declared
            if namespace_of(each.name) == namespace
        )

    def facets(kind: str, namespace: str) -> tuple[Entry, ...]:
        return entries([each for each in program.facets if each.kind == kind], namespace)

    return tuple(
        NamespacePage(
            name,
            read_doc(docs[name]),
            facets("workflow", name),
            facets("event", name),
            facets("facet", name),
            entries(program.schemas, name),
            entries(program.enums, name),
            entries(program.schedules, name),
        )
        for name in sorted(docs)
    )


def _namespace_docs(files: Sequence[File]) -> dict[str, str]:
    """The doc comments of each namespace; one that is opened often may have many."""
    found: dict[str, list[str]] = {}
    for file in files:
        for namespace in file.namespaces:
            texts = found.setdefault(namespace.name.text, [])
            if namespace.doc is not None:
                texts.append(namespace.doc.text)
    return {name: "\n\n".join(texts) for name, texts in found.items()}


def _place(program: ir.Program, name: str) -> str:
    span = program.spans.get(name)
    return f"{span.file}:{span.line}" if span is not None else ""
