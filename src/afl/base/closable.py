"""What is open until it is closed, for `with`."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closable:
    """Closed at the end of a `with`, however that comes."""

    def close(self) -> None:
        """Gives back what it has."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
