"""What the SDK refuses, and how handlers say what became of their work.

AflError
├── AppError
│   ├── BadProgram        the flows do not compile
│   ├── BadHandler        a function cannot serve a facet of the deployed program
│   ├── BadDatabase       a database URL that no store is for
│   └── ExtraMissing      a library is not installed that an extra brings
├── Retry                 of a handler: it did not work this time
├── Permanent             of a handler: it will not work, however often it is tried
└── Skip                  of a handler: there is nothing to do
"""

from __future__ import annotations

from afl.base.errors import AflError
from afl.runtime.handler_table import Permanent

__all__ = [
    "AppError",
    "BadDatabase",
    "BadHandler",
    "BadProgram",
    "ExtraMissing",
    "Permanent",
    "Retry",
    "Skip",
]


class AppError(AflError):
    """The SDK cannot do this."""

    code = "app"


class BadProgram(AppError):
    """The flows do not compile."""

    code = "app.bad_program"


class BadHandler(AppError):
    """A function cannot serve a facet of the deployed program."""

    code = "app.bad_handler"


class BadDatabase(AppError):
    """There is no store for this database URL."""

    code = "app.bad_database"


class ExtraMissing(AppError):
    """A library that this needs is not installed."""

    code = "app.extra_missing"


class Retry(AflError):
    """It did not work this time. It is tried again as the facet's `Retry` policy says; without one
    the step fails."""

    code = "app.retry"
    retryable = True


class Skip(AflError):
    """There is nothing to do. The step is done, and its results are their defaults, or null."""

    code = "app.skip"
