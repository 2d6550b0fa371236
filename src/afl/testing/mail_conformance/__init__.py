"""The judge of mailboxes: whoever passes is a `MessageCoordinator`.

`harness` is what a coordinator's own tests supply. `suite.MailSuite` is a pytest class to inherit
from; `machine.mail_machine` plays random games against `reference`, a mailbox too simple to be
wrong. What they hold a coordinator to, beyond the words of the port:

- Order: the highest priority, then `ready at`, then the order of sending. Ready at is the time of
  sending and the delay, of a nack and its backoff, or of a redrive; whoever lets a reservation run
  out leaves the message its place.
- Only receiving and `recover_pending` move messages because of time: first what was held too long,
  then what outlived its `ttl_seconds` unreceived. `counts` and the rest show what lies where.
- After its deadline a token has lost its message, whether or not it was recovered yet; the deadline
  itself is too late.
- The first receipt has `delivery_attempts` 1. When a message is nacked or held too long with more
  attempts than `retry_attempts`, it is dead. Reasons: `permanent`, `retries`, `expired`. What was
  held too long is ready at once, with `last_error` "visibility timeout".
- A backoff is between half and the whole of min(base * factor ** (attempts - 1), max).
- Ready, delayed and reserved messages count towards `queue_size`, dead letters do not. A redrive
  takes the oldest first, as many as there is room for; a redriven message has no `ttl_seconds`.
- An id that was refused since the mailbox was full is not remembered.
- Subscriptions of an agent add up; an empty one is refused. What is filtered out stays ready.
- An operation whose answer was lost is repeated by the coordinator and answers as if it were not.
"""
