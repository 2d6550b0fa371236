"""What buyer and seller have in common: how they read their mail.

Each decides from a message alone, and the id of what it sends follows from what it has received. So
it does no harm if a message comes twice, or if one of the two is killed and started again.
"""

from collections.abc import Callable

from afl.messaging.coordinator import MessageCoordinator
from afl.messaging.models import AgentId, AgentMessage, FailureType


async def answer_mail(
    mailboxes: MessageCoordinator,
    me: AgentId,
    decide: Callable[[AgentMessage], AgentMessage | None],
    is_done: Callable[[], bool] = lambda: False,
) -> None:
    """Receives, decides and answers, until it is done."""
    while not is_done():
        for received in await mailboxes.receive_batch(me, 10, 30, wait_seconds=5):
            try:
                answer = decide(received.queue_message.message)
            except (LookupError, TypeError) as error:
                # it would be the same next time: a dead letter, for people to look at
                await mailboxes.nack(me, received.token, FailureType.PERMANENT, str(error))
                continue
            if answer is not None:
                # whoever dies after this makes the same answer again, and it is sent once
                await mailboxes.send_message(me, answer.recipient, answer)
            await mailboxes.ack(me, received.token)
