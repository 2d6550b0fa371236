-- name: send
-- Puts messages into mailboxes.
select r.place, r.outcome from afl.send_mail_v1(
    %(recipients)s::text[], %(ids)s::text[], %(types)s::text[], %(priorities)s::int[],
    %(bodies)s::text[], %(delays)s::double precision[], %(ttls)s::double precision[],
    %(whole)s::boolean) as r
order by r.place

-- name: receive
-- The next messages, for a while; the first row tells what else happened.
select r.place, r.id, r.body, r.priority, r.sent_at, r.attempts, r.last_error, r.deadline, r.buried,
       r.due
from afl.receive_mail_v1(
    %(recipient)s::text, %(receipt)s::text, %(limit)s::int, %(visibility)s::double precision,
    %(round)s::int[], %(again)s::boolean) as r
order by r.place

-- name: give_back
-- Undoes a receipt that nobody waits for any more.
update afl.mail m set
    receipt = null, place = null, deadline = null, attempts = m.attempts - 1
where m.recipient = %(recipient)s::text and m.receipt = %(receipt)s::text
  and m.deadline > afl.now() and m.deadline is not null

-- name: ack
-- It is done.
select afl.ack_mail_v1(
    %(recipient)s::text, %(id)s::bigint, %(receipt)s::text, %(operation)s::uuid,
    %(again)s::boolean)

-- name: nack
-- It is not done.
select afl.nack_mail_v1(
    %(recipient)s::text, %(id)s::bigint, %(receipt)s::text, %(permanent)s::boolean,
    %(error)s::text, %(chance)s::double precision, %(operation)s::uuid, %(again)s::boolean)

-- name: extend
-- More time, from now.
update afl.mail m set
    deadline = afl.now() + make_interval(secs => %(visibility)s::double precision)
where m.id = %(id)s::bigint and m.recipient = %(recipient)s::text
  and m.receipt = %(receipt)s::text and m.deadline > afl.now()
returning m.id

-- name: recover
-- Takes back what is held too long, and buries what nobody came for.
select r.late, r.buried from afl.recover_mail_v1(
    %(recipient)s::text, %(operation)s::uuid, %(again)s::boolean) as r

-- name: redrive
-- Dead letters into the mailbox again.
select afl.redrive_mail_v1(
    %(recipient)s::text, %(message_id)s::text, %(operation)s::uuid, %(again)s::boolean)

-- name: purge
-- Removes dead letters for good.
select afl.purge_mail_v1(
    %(recipient)s::text, %(message_id)s::text, %(operation)s::uuid, %(again)s::boolean)

-- name: peek
-- The next messages of each priority, and whose turn it is.
select c.fairness, coalesce(t.turn, 0), m.priority, m.body
from afl.mail_config c
left join afl.mail_turn t on t.recipient = %(recipient)s::text
cross join (
    select array_agg(x) as types
    from afl.mail_subscription s, unnest(s.types) as x where s.recipient = %(recipient)s::text
) as w
cross join (values (9), (5), (1)) as l (level)
cross join lateral (
    select m.priority, m.body, m.ready_at, m.id from afl.mail m
    where m.recipient = %(recipient)s::text and m.deadline is null and m.priority = l.level
      and m.ready_at <= afl.now() and (w.types is null or m.type = any(w.types))
    order by m.ready_at, m.id limit %(limit)s::int
) as m
order by m.priority desc, m.ready_at, m.id

-- name: counts
-- Where the messages of a mailbox are.
select coalesce(c.sent, 0), w.ready, w.waiting - w.ready, h.held, coalesce(c.acked, 0), d.dead,
       coalesce(c.purged, 0)
from (
    select count(*) as waiting, count(*) filter (where m.ready_at <= n.now) as ready
    from afl.mail m, (select afl.now() as now offset 0) as n
    where m.recipient = %(recipient)s::text and m.deadline is null
) as w
cross join (
    select count(*) as held from afl.mail m
    where m.recipient = %(recipient)s::text and m.deadline is not null
) as h
cross join (
    select count(*) as dead from afl.mail_dead d where d.recipient = %(recipient)s::text
) as d
cross join (
    select sum(c.sent)::bigint as sent, sum(c.acked)::bigint as acked,
           sum(c.purged)::bigint as purged
    from afl.mail_count c where c.recipient = %(recipient)s::text
) as c

-- name: dead_letters
-- Dead letters, the oldest first.
select d.body, d.priority, d.sent_at, d.attempts, d.last_error, d.reason, d.died_at
from afl.mail_dead d where d.recipient = %(recipient)s::text
order by d.number limit %(limit)s::int

-- name: subscribe
-- From now on the agent receives these types.
insert into afl.mail_subscription (id, recipient, types)
values (%(id)s::text, %(recipient)s::text, %(types)s::text[])
on conflict (id) do nothing

-- name: unsubscribe
-- Takes a subscription back.
delete from afl.mail_subscription s where s.id = %(id)s::text

-- name: config
-- The settings in force.
select c.queue_size, c.retry_attempts, c.backoff_base, c.backoff_factor, c.backoff_max, c.fairness,
       c.dedupe_seconds, c.version
from afl.mail_config c

-- name: configure
-- Changes what is given.
update afl.mail_config c set
    queue_size = coalesce(%(queue_size)s::int, c.queue_size),
    retry_attempts = coalesce(%(retry_attempts)s::int, c.retry_attempts),
    backoff_base = coalesce(%(backoff_base)s::double precision, c.backoff_base),
    backoff_factor = coalesce(%(backoff_factor)s::double precision, c.backoff_factor),
    backoff_max = coalesce(%(backoff_max)s::double precision, c.backoff_max),
    fairness = coalesce(%(fairness)s::text, c.fairness),
    dedupe_seconds = coalesce(%(dedupe_seconds)s::double precision, c.dedupe_seconds),
    version = c.version + 1

-- name: prune
-- Forgets what is over.
select afl.prune_mail_v1()
