"""Sells what is in prices.json: `python seller.py redis://127.0.0.1`.

Of each product it wants the first price, and 5 less in every round, but never less than the lowest.
"""

import asyncio
import json
import logging
import sys
from pathlib import Path

from mail import answer_mail
from redis.asyncio import Redis

from afl.messaging.models import AgentId, AgentMessage
from afl.messaging.redis_coordinator import RedisMessageCoordinator
from afl.messaging.requesting import response_to

PRICES = Path(__file__).with_name("prices.json")
ME = AgentId(type="seller")
STEP = 5

log = logging.getLogger("seller")


def decide(offer: AgentMessage) -> AgentMessage:
    """Takes an offer that is good enough, and says its own price otherwise."""
    product, price = offer.payload["product"], offer.payload["price"]
    prices = json.loads(PRICES.read_text())
    if product not in prices:
        raise LookupError(f"there is no price for a {product}")
    wanted = max(
        prices[product]["lowest"], prices[product]["first"] - STEP * offer.payload["round"]
    )
    log.info("%s: %s offered, %s wanted", product, price, wanted)
    if price >= wanted:
        return response_to(offer, {"agreed": True, "price": price})
    return response_to(offer, {"agreed": False, "price": wanted, "round": offer.payload["round"]})


async def main(url: str) -> None:
    """Sells until it is stopped."""
    async with Redis.from_url(url) as redis:
        await answer_mail(RedisMessageCoordinator(redis), ME, decide)


if __name__ == "__main__":
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.INFO)
    asyncio.run(main(sys.argv[1]))
