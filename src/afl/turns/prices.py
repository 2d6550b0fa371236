"""What requests cost: a table of your own first, then the prices that genai-prices knows."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from afl.base.clock import Clock
from afl.base.system import SystemClock
from afl.turns.model import Price, Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

_MILLION = Decimal(1_000_000)
#: Providers put words of their own before ours, such as how tools are called.
_ADDED_TOKENS = 1_000
#: A price may change while a request is under way; none takes longer than this.
_LONGEST_REQUEST = timedelta(hours=1)
#: Providers whose names are those of the price list. Other servers have their own prices, or none.
_LISTED = ("anthropic", "openai")


@dataclass(frozen=True, slots=True)
class Rate:
    """What a model costs by your own account, in USD: tokens by the million, and each request."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    #: None is: as much as other input
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    request: Decimal = Decimal(0)

    @property
    def version(self) -> str:
        """The same for the same rates, whatever table they are in."""
        text = ",".join(str(getattr(self, rate.name)) for rate in fields(self))
        return f"own:{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def cost(self, usage: Usage) -> Decimal:
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        plain = max(0, usage.input - usage.cache_read - usage.cache_write)
        by_token = (
            plain * self.input
            + usage.cache_read * read
            + usage.cache_write * write
            + usage.output * self.output
        )
        return self.request + by_token / _MILLION


#: Looks a model up in a table of rates; `table.get` will do.
OwnRates = Callable[[str], Rate | None]


def _none(_model: str) -> Rate | None:
    return None


class PriceBook:
    """`ports.Prices`: rates of your own, by the names of `Brief.models`, before the public list."""

    def __init__(self, own: OwnRates = _none, clock: Clock | None = None) -> None:
        self._own = own
        self._clock = clock or SystemClock()

    def price(self, model: str, usage: Usage) -> Price:
        """What a request has cost; 0 and `unknown` if no table has the model."""
        rate = self._own(model)
        if rate is not None:
            return Price(rate.cost(usage), rate.version)
        listed = _listed(model)
        if listed is None:
            return Price(Decimal(0), "unknown")
        return Price(_cost(listed.get_prices(self._clock.now()), usage), _list_version())

    def most(self, model: str, request_bytes: int, known_input: int, max_tokens: int) -> Decimal:
        """More than what a request can cost: a token stands for at least one byte."""
        tokens = known_input + request_bytes + _ADDED_TOKENS
        costs = self._costs(model)
        # nobody says beforehand how much of it will be read from a cache or written to one
        return max(
            (cost(usage) for cost in costs for usage in _extremes(tokens, max_tokens)),
            default=Decimal(0),
        )

    def _costs(self, model: str) -> list[Callable[[Usage], Decimal]]:
        rate = self._own(model)
        if rate is not None:
            return [rate.cost]
        listed = _listed(model)
        if listed is None:
            return []
        now = self._clock.now()
        times = (now, now + _LONGEST_REQUEST)
        return [_costing(listed.get_prices(time)) for time in times]


def _extremes(tokens: int, max_tokens: int) -> Iterable[Usage]:
    yield Usage(input=tokens, output=max_tokens)
    yield Usage(input=tokens, output=max_tokens, cache_write=tokens)
    yield Usage(input=tokens, output=max_tokens, cache_read=tokens)


def _costing(prices: ModelPrice) -> Callable[[Usage], Decimal]:
    return lambda usage: _cost(prices, usage)


def _cost(prices: ModelPrice, usage: Usage) -> Decimal:
    cached = usage.cache_read + usage.cache_write
    counted = importlib.import_module("genai_prices").Usage(
        input_tokens=max(usage.input, cached),  # the list rejects parts greater than their whole
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
    return prices.calc_price(counted)["total_price"]


def _listed(model: str) -> ModelInfo | None:
    provider, _, name = model.partition(":")
    if provider not in _LISTED:
        return None
    try:
        snapshots = importlib.import_module("genai_prices.data_snapshot")
    except ModuleNotFoundError:  # the extra is not installed: nothing has a price
        return None
    try:
        found: ModelInfo = snapshots.get_snapshot().find_provider_model(name, None, provider, None)[
            1
        ]
    except LookupError:
        return None
    return found if found.prices else None


def _list_version() -> str:
    return f"genai-prices {importlib.import_module('genai_prices').__version__}"
