"""What all shapes of the API have in common."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

__all__ = ["Form", "JsonMap", "MarkEvent", "Page", "Problem", "View"]

JsonMap = dict[str, JsonValue]
T = TypeVar("T")


class View(BaseModel):
    """Something that the API tells. Made from the engine's own values, never changed."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class Form(BaseModel):
    """Something that the API is told. A field that it does not know is a mistake of the sender."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Page(View, Generic[T]):
    """A part of a list. `next` goes into `cursor` of the next request; null at the end."""

    items: list[T]
    next: str | None = None


class MarkEvent(View):
    """A topic, and a name of the state that it is in."""

    topic: str
    mark: str


class Problem(View):
    """What went wrong (RFC 9457): a code for machines, a sentence for people, and what to do."""

    type: Annotated[str, Field(description="Where the code is explained.")]
    title: str
    status: int
    detail: str
    code: Annotated[str, Field(description="Never changes once published.")]
    hint: str | None = None
    errors: list[JsonMap] = Field(default_factory=list)
