"""Buys something: `python buyer.py redis://127.0.0.1 lamp --limit 90`.

It offers 60 at first, and 5 more in every round, but never more than its limit.
"""

import argparse
import asyncio
import logging
import secrets

from mail import answer_mail
from redis.asyncio import Redis

from afl.messaging.models import AgentId, AgentMessage, MessageType
from afl.messaging.redis_coordinator import RedisMessageCoordinator

SELLER = AgentId(type="seller")
FIRST, STEP = 60, 5

log = logging.getLogger("buyer")


class Buyer:
    """One that wants one product. Its deal has a name: started again with it, it goes on."""

    def __init__(self, product: str, limit: int, deal: str) -> None:
        self.me = AgentId(type="buyer", instance=deal)
        self.is_done = False
        self._product = product
        self._limit = limit
        self._deal = deal

    def offer(self, number: int) -> AgentMessage:
        """The offer of a round, the first being 1. The same round makes the same message."""
        return AgentMessage(
            message_id=f"{self._deal}-{number}",
            sender=self.me,
            recipient=SELLER,
            message_type=MessageType.REQUEST,
            payload={"product": self._product, "price": self._price(number), "round": number},
        )

    def decide(self, answer: AgentMessage) -> AgentMessage | None:
        """Offers more, unless the seller agrees or wants too much."""
        wanted = answer.payload["price"]
        if answer.payload["agreed"]:
            log.info("agreed: the %s for %s", self._product, wanted)
            self.is_done = True
            return None
        number = answer.payload["round"]
        if self._price(number) == self._limit:
            log.info("no deal: the %s costs %s", self._product, wanted)
            self.is_done = True
            return None
        log.info("they want %s, I offer %s", wanted, self._price(number + 1))
        return self.offer(number + 1)

    def _price(self, number: int) -> int:
        return min(FIRST + STEP * (number - 1), self._limit)


async def main(url: str, buyer: Buyer) -> None:
    """Offers, and answers until it is decided."""
    async with Redis.from_url(url) as redis:
        mailboxes = RedisMessageCoordinator(redis)
        try:
            await mailboxes.send_message(buyer.me, SELLER, buyer.offer(1))
            await answer_mail(mailboxes, buyer.me, buyer.decide, lambda: buyer.is_done)
        finally:
            await mailboxes.close()


if __name__ == "__main__":
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.INFO)
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("product")
    parser.add_argument("--limit", type=int, default=90)
    parser.add_argument("--deal", default=f"deal-{secrets.token_hex(3)}")
    given = parser.parse_args()
    asyncio.run(main(given.url, Buyer(given.product, given.limit, given.deal)))
