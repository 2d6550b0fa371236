-- name: enqueue
-- Makes tasks, or finds those that have the idem.
select r.known, {task}
from afl.enqueue_v1(
    %(specs)s::json, %(inputs)s::json[], %(ids)s::uuid[], %(tenants)s::text[], %(lanes)s::text[],
    %(idems)s::text[]) as r, lateral (select (r.t).*) as t

-- name: enqueue_plain
-- Makes tasks that differ in nothing but their input, and have no lane and no idem.
insert into afl.task (
    id, tenant, run, kind, name, short_name, list, hold, depth, state, priority, run_at, wake,
    max_failures, retry_delay, retry_backoff, retry_max_delay, retry_jitter, max_crashes, deadline,
    input, reason_code, reason_since, reason_until, trace, created_at)
select x.id, %(tenant)s::text, coalesce(%(run)s::text, x.id::text), %(kind)s::text,
       %(name)s::text, split_part(%(name)s::text, '.', -1), %(list)s::text, %(hold)s::boolean, 0,
       'ready', %(priority)s::int, n.now + %(delay)s::interval, %(wake)s::text,
       %(max_failures)s::int, %(retry_delay)s::interval, %(retry_backoff)s::double precision,
       %(retry_max_delay)s::interval, %(retry_jitter)s::boolean, %(max_crashes)s::int,
       n.now + %(timeout)s::interval, x.input, %(reason)s::text, n.now,
       n.now + %(until)s::interval, %(trace)s::text, n.now
from (select afl.now() as now) as n
cross join unnest(%(ids)s::uuid[], %(inputs)s::json[]) as x(id, input)
returning created_at

-- name: enqueue_one
-- The same for one task.
insert into afl.task (
    id, tenant, run, kind, name, short_name, list, hold, depth, state, priority, run_at, wake,
    max_failures, retry_delay, retry_backoff, retry_max_delay, retry_jitter, max_crashes, deadline,
    input, reason_code, reason_since, reason_until, trace, created_at)
select %(id)s::uuid, %(tenant)s::text, coalesce(%(run)s::text, %(id)s::text), %(kind)s::text,
       %(name)s::text, split_part(%(name)s::text, '.', -1), %(list)s::text, %(hold)s::boolean, 0,
       'ready', %(priority)s::int, n.now + %(delay)s::interval, %(wake)s::text,
       %(max_failures)s::int, %(retry_delay)s::interval, %(retry_backoff)s::double precision,
       %(retry_max_delay)s::interval, %(retry_jitter)s::boolean, %(max_crashes)s::int,
       n.now + %(timeout)s::interval, %(input)s::json, %(reason)s::text, n.now,
       n.now + %(until)s::interval, %(trace)s::text, n.now
from (select afl.now() as now) as n
returning created_at

-- name: register_levels
-- Lists, short names and priorities that tasks are about to be made with.
insert into afl.claim_level (list, short_name, priority)
select distinct l.list, split_part(l.name, '.', -1), l.priority
from unnest(%(lists)s::text[], %(names)s::text[], %(priorities)s::int[]) as l(list, name, priority)
order by 1, 2, 3
on conflict do nothing

-- name: finish
-- Closes tasks that nobody waits for, and takes what is ready.
select t.* from afl.finish_v1(
    %(fences)s::bigint[], %(outcomes)s::text[], %(results)s::json[], %(errors)s::json[],
    %(events)s::json[], %(worker)s::text, %(names)s::text[], %(lists)s::text[], %(n)s::int,
    %(token)s::text) as t

-- name: finish_one
-- Closes a task that nobody waits for, and takes one that is ready.
select t.* from afl.finish_one_v1(
    %(fence)s::bigint, %(outcome)s::text, %(result)s::json, %(error)s::json, %(event)s::json,
    %(worker)s::text, %(name)s::text, %(short)s::text, %(list)s::text, %(token)s::text) as t

-- name: claim
-- Takes ready tasks, each with the answers that it has not taken.
select r.replies, {task}
from afl.claim_v1(
    %(worker)s::text, %(names)s::text[], %(lists)s::text[], %(n)s::int, %(token)s::text) as r,
    lateral (select (r.t).*) as t

-- name: take_task
-- Takes one task if it is ready, with the answers that it has not taken.
select r.replies, {task}
from afl.take_task_v1(%(worker)s::text, %(task)s::uuid) as r, lateral (select (r.t).*) as t

-- name: renew
-- Moves a worker's expiry and tells it what it has lost.
select r.expires_at, r.lost, r.stop, r.stray
from afl.renew_v1(%(worker)s::text, %(held)s::bigint[]) as r

-- name: extend
-- Moves the deadlines of a held task and of its call.
select afl.extend_v1(%(fence)s::bigint, %(by)s::interval)

-- name: commit
-- One step of work for each fence, all of them or nothing.
select r.at, r.repeated, r.eager, r.calls, r.replies, {task}
from afl.commit_v1(
    %(fences)s::bigint[], %(numbers)s::int[], %(thens)s::text[], %(outcomes)s::text[],
    %(results)s::json[], %(errors)s::json[], %(permanents)s::boolean[], %(cards)s::int[],
    %(card_at)s::int[], %(card_hashes)s::text[], %(card_kinds)s::text[],
    %(card_contents)s::json[], %(applied_at)s::int[], %(applied)s::uuid[],
    %(calls)s::json, %(inputs)s::json[], %(call_at)s::int[], %(call_ids)s::uuid[],
    %(call_keys)s::text[], %(call_lanes)s::text[], %(call_tenants)s::text[],
    %(worker)s::text, %(names)s::text[], %(lists)s::text[], %(n)s::int, %(token)s::text,
    %(claim)s::boolean) as r, lateral (select (r.t).*) as t

-- name: step
-- One step of flows, with the callees that end for it, on the short way.
select r.at, r.task_deadlines, r.suspend_deadlines, r.stands, r.fences, r.deadlines, r.replies,
       {task}
from afl.step_v1(
    %(locks)s::uuid[], %(wake)s::uuid[], %(parents)s::uuid[],
    %(tasks)s::uuid[], %(fences)s::bigint[], %(numbers)s::int[], %(outcomes)s::text[],
    %(results)s::json[], %(errors)s::json[], %(events)s::json[], %(answers)s::uuid[],
    %(taken)s::boolean[],
    %(suspends)s::uuid[], %(suspend_fences)s::bigint[], %(suspend_numbers)s::int[],
    %(applied_by)s::uuid[], %(applied)s::uuid[],
    %(callers)s::uuid[], %(calls)s::uuid[], %(callees)s::uuid[], %(keys)s::text[],
    %(inputs)s::json[], %(shapes)s::int[], %(tenants)s::text[], %(kinds)s::text[],
    %(call_names)s::text[], %(call_lists)s::text[], %(holds)s::boolean[], %(priorities)s::int[],
    %(delays)s::interval[], %(timeouts)s::interval[], %(call_timeouts)s::interval[],
    %(wakes)s::text[], %(max_failures)s::int[], %(retry_delays)s::interval[],
    %(retry_backoffs)s::double precision[], %(retry_max_delays)s::interval[],
    %(retry_jitters)s::boolean[], %(max_crashes)s::int[], %(traces)s::text[], %(eager)s::int,
    %(worker)s::text, %(names)s::text[], %(lists)s::text[], %(n)s::int, %(token)s::text,
    %(claim)s::boolean) as r, lateral (select (r.t).*) as t

-- name: reply
-- Answers a call, unless it has an answer.
select afl.reply_v1(%(call)s::uuid, %(status)s::text, %(reply)s::json)

-- name: stop
-- Closes a task as canceled, or asks its worker to stop.
select afl.stop_v1(%(task)s::uuid, %(force)s::boolean, %(error)s::json)
