"""Money, as people and programs read it."""

from __future__ import annotations

from decimal import Decimal


def money(usd: Decimal) -> str:
    """An amount, exact, with two places at least."""
    whole, _, rest = f"{usd:f}".partition(".")
    return f"{whole}.{rest.rstrip('0'):0<2}"


def priced(usd: Decimal, unpriced: int) -> str:
    """An amount, with a mark if there are requests whose price nobody knew."""
    return f"{money(usd)}+?" if unpriced else money(usd)
