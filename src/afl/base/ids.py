"""The port through which AgentFlow makes fresh ids."""

from __future__ import annotations

from typing import Protocol


class IdSource(Protocol):
    """Makes ids that are unique everywhere and, from one source, sort in the order they were made.

    The ids are version 7 UUIDs in their usual text form. Time order keeps the index pages that are
    being written close together; beyond that an id carries no meaning, and nothing may take one
    apart.
    """

    def new_id(self) -> str:
        """A fresh id: 36 characters, lower case, greater than every id made here before."""
        ...
