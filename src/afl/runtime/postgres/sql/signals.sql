-- name: emit
-- Keeps an event, unless its id is known.
insert into afl.signal as s (id, name, key, payload, emitted_at)
values (%(id)s, %(name)s, %(key)s, %(payload)s::json, afl.now())
on conflict do nothing
returning s.id

-- name: match_events
-- Pairs of waiting calls and events, also those that were found before.
select m.run::text, m.call_key, m.payload from afl.match_signals_v1(%(limit)s::int) as m

-- name: settle_event
-- The event is gone, unless its call has ended otherwise: then it is for the next one.
update afl.signal s set
    run = case when e.lost then null else s.run end,
    call_key = case when e.lost then null else s.call_key end,
    fresh = e.lost,
    payload = case when e.lost then s.payload end,
    settled_at = case when e.lost then null else afl.now() end
from (select coalesce(afl.call_ending_v1(%(run)s::uuid, %(call_key)s), 'ok') <> 'ok' as lost) as e
where s.run = %(run)s::uuid and s.call_key = %(call_key)s and s.settled_at is null

-- name: get_memo
-- A result that is still valid.
select m.returns from afl.memo m
where m.facet = %(facet)s and m.key = %(key)s
  and (m.expires_at is null or m.expires_at > afl.now())

-- name: put_memo
-- Keeps a result, in the place of an older one.
insert into afl.memo (facet, key, returns, made_at, expires_at)
values (%(facet)s, %(key)s, %(returns)s::json, afl.now(), afl.now() + %(ttl)s::interval)
on conflict (facet, key) do update set
    returns = excluded.returns, made_at = excluded.made_at, expires_at = excluded.expires_at

-- name: now
-- The time by the one clock.
select afl.now()
