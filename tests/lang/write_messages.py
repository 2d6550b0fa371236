"""Writes the section Message of every page anew: `python -m tests.lang.write_messages`.

Read what it changes before you keep it: the message is what people will see.
"""

from __future__ import annotations

import re

from afl.lang.diagnostics.page import parse_page
from tests.lang.code_pages import FOLDER, message_of

_MESSAGE = re.compile(r"(?<=^## Message\n\n```text\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)


def rewritten(text: str) -> str:
    """A page with the message that the compiler prints now."""
    message = message_of(parse_page(text))
    return _MESSAGE.sub(lambda _: f"{message}\n", text, count=1)


def main() -> None:
    for path in sorted(FOLDER.glob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = rewritten(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"{path.name}: new message")


if __name__ == "__main__":
    main()
