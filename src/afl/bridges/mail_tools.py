"""`afl.mail.Send` and `afl.mail.Ask` as tools of agents, whatever programs are deployed."""

from __future__ import annotations

from functools import lru_cache

from afl.ir import model as ir
from afl.lang.api import compile_sources

#: A program holds the built-in facets that it calls: this one is there to hold them.
_HOLDER = """\
namespace mail {
  workflow Holder() andThen {
    sent = afl.mail.Send(to = "a", payload = "")
    asked = afl.mail.Ask(to = "a", payload = "")
  }
}
"""


@lru_cache(maxsize=1)
def mail_program() -> ir.Program:
    """A program that has the facets."""
    program = compile_sources([("mail.afl", _HOLDER)]).program
    assert program is not None
    return program
