"""Small damage to texts: token by token, letter by letter, and by joining halves of two texts."""

from __future__ import annotations

from random import Random

from afl.lang.diagnostics.reporter import Reporter
from afl.lang.lexer import tokenize
from afl.lang.source import Source
from afl.lang.tokens import CONTEXTUAL, RESERVED, SIGNS

VOCABULARY = (
    *SIGNS,
    *sorted(RESERVED),
    *sorted(CONTEXTUAL),
    "log", "assert", "name", "F", "x", "_", "0", "1.5", "1h30m", '"text"', '"""block"""',
    "script { x = 1 }",
)  # fmt: skip
_LETTERS = (
    "{}()[]\"'#/*\\$;:,.=<>+-!?%&|@~^`_aZ09 \t\n\r"
    "\x00\x0b\x7f\ufeff\u00e4\u2028\u3000\U0001f600\ud800"
)


def split(text: str) -> tuple[list[str], list[str]]:
    """The tokens of a text and what stands before each; the last token is the empty end."""
    tokens = tokenize(Source("text", text), Reporter())
    pieces = [tokens.text(index) for index in range(len(tokens.kinds))]
    ends = [0, *tokens.ends]
    gaps = [text[ends[i] : start] for i, start in enumerate(tokens.starts)]
    return pieces, gaps


def joined(pieces: list[str], gaps: list[str]) -> str:
    return "".join(gap + piece for gap, piece in zip(gaps, pieces, strict=True))


def mutate_tokens(text: str, rng: Random, times: int = 1) -> str:
    """Deletes, doubles, swaps or replaces tokens."""
    pieces, gaps = split(text)
    for _ in range(times):
        index, other = rng.randrange(len(pieces)), rng.randrange(len(pieces))
        match rng.choice(("delete", "double", "swap", "neighbours", "replace", "insert")):
            case "delete":
                pieces[index] = " "
            case "double":
                pieces[index] = f"{pieces[index]} {pieces[index]}"
            case "swap":
                pieces[index], pieces[other] = pieces[other], pieces[index]
            case "neighbours":
                pieces[index - 1], pieces[index] = pieces[index], pieces[index - 1]
            case "replace":
                pieces[index] = f" {rng.choice(VOCABULARY)} "
            case _:
                pieces[index] = f" {rng.choice(VOCABULARY)} {pieces[index]}"
    return joined(pieces, gaps)


def mutate_letters(text: str, rng: Random, times: int = 1) -> str:
    """Deletes, replaces, adds or doubles letters and stretches of them."""
    for _ in range(times):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.choice((0, 1, 1, 5, 100)))
        match rng.choice(("delete", "replace", "double", "truncate")):
            case "delete":
                text = text[:start] + text[end:]
            case "replace":
                text = text[:start] + rng.choice(_LETTERS) + text[end:]
            case "double":
                text = text[:end] + text[start:]
            case _:
                text = text[:start] if rng.random() < 0.3 else text
    return text


def mutate_bytes(text: str, rng: Random) -> str:
    """Damages the UTF-8 form, as a broken file would. Undecodable bytes become lone surrogates."""
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(rng.randint(1, 4)):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    return data.decode("utf-8", "surrogateescape")


def splice(first: str, second: str, rng: Random) -> str:
    """The head of one text and the tail of another, cut between tokens."""
    one, gaps_one = split(first)
    two, gaps_two = split(second)
    cut_one, cut_two = rng.randrange(len(one)), rng.randrange(len(two))
    return (
        joined(one[:cut_one], gaps_one[:cut_one]) + " " + joined(two[cut_two:], gaps_two[cut_two:])
    )


def random_tokens(rng: Random, count: int) -> str:
    return " ".join(rng.choice(VOCABULARY) for _ in range(count))


def random_letters(rng: Random, count: int) -> str:
    """Any code points, half of them from those that mean something."""
    return "".join(
        rng.choice(_LETTERS) if rng.random() < 0.5 else chr(rng.randrange(0x110000))
        for _ in range(count)
    )
