-- name: register
-- Makes a worker known, or describes it anew.
insert into afl.worker as w (id, name, "group", service, lists, handlers, slots, lease, state,
                             started_at, seen_at, expires_at)
select %(id)s, %(name)s, %(group)s, %(service)s, %(lists)s::text[], %(handlers)s::text[],
       %(slots)s::int, %(lease)s::interval, 'startup', x.now, x.now, x.now + %(lease)s::interval
from (select afl.now() as now) as x
on conflict (id) do update set
    name = excluded.name, "group" = excluded."group", service = excluded.service,
    lists = excluded.lists, handlers = excluded.handlers, slots = excluded.slots,
    lease = excluded.lease, state = excluded.state, started_at = excluded.started_at,
    seen_at = excluded.seen_at, expires_at = excluded.expires_at
returning w.id, w.name, w."group", w.service, w.lists, w.handlers, w.slots, w.lease, w.state,
          w.started_at, w.seen_at, w.expires_at

-- name: set_worker_state
-- What a worker says about itself.
update afl.worker w set state = %(state)s where w.id = %(worker)s returning w.id

-- name: get_worker
-- One worker.
select w.id, w.name, w."group", w.service, w.lists, w.handlers, w.slots, w.lease, w.state,
       w.started_at, w.seen_at, w.expires_at
from afl.worker w where w.id = %(worker)s

-- name: live_workers
-- Those that may claim.
select w.id, w.name, w."group", w.service, w.lists, w.handlers, w.slots, w.lease, w.state,
       w.started_at, w.seen_at, w.expires_at
from afl.worker w
where w.expires_at > afl.now() and w.state in ('startup', 'running') order by w.id

-- name: workers_seen
-- Those that were heard of lately, whatever became of them.
select w.id, w.name, w."group", w.service, w.lists, w.handlers, w.slots, w.lease, w.state,
       w.started_at, w.seen_at, w.expires_at
from afl.worker w
where w.seen_at > afl.now() - %(within)s::interval
order by w.seen_at desc, w.id limit %(limit)s::int
