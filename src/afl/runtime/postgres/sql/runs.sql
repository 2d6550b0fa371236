-- name: write_run
-- Puts a run in place, unless it is there.
insert into afl.run (
    id, program, workflow, inputs, state, outputs, error, labels, key, priority, tenant, parent,
    parent_path, fork, fork_run, pause_requested, created_at, finished_at)
select %(id)s::uuid, %(program)s::text, %(workflow)s::text, %(inputs)s::json, %(state)s::text,
       %(outputs)s::json, %(error)s::json, %(labels)s::jsonb, %(key)s::text, %(priority)s::int,
       %(tenant)s::text, %(parent)s::uuid, %(parent_path)s::text, %(fork)s::json,
       %(fork_run)s::uuid, %(pause_requested)s::boolean, t.now,
       case when %(ended)s::boolean then t.now end
from (select afl.now() as now) as t
on conflict do nothing

-- name: start_run
-- Notes that a created run is being worked on.
update afl.run r set state = 'running' where r.id = %(run)s::uuid and r.state = 'created'

-- name: finish_run
-- Ends a run that has not ended; nothing of it waits for events any more.
with gone as (delete from afl.signal_wait w where w.run = %(run)s::uuid)
update afl.run r set state = %(state)s::text, outputs = %(outputs)s::json,
    error = %(error)s::json, finished_at = afl.now()
where r.id = %(run)s::uuid and r.finished_at is null

-- name: set_pause
-- Asks a run that has not ended to pause, or takes that back.
update afl.run r set pause_requested = %(pause)s
where r.id = %(run)s::uuid and r.finished_at is null
returning r.id

-- name: get_run
-- One run.
select {run} from afl.run r where r.id = %(run)s::uuid

-- name: get_runs
-- Several runs by id.
select {run} from afl.run r where r.id = any(%(runs)s::uuid[])

-- name: find_runs
-- Runs, the newest first.
select {run} from afl.run r
where (%(before)s::uuid is null or r.id < %(before)s::uuid)
  and (%(state)s::text is null or r.state = %(state)s)
  and (%(workflow)s::text is null or r.workflow = %(workflow)s)
  and (%(parent)s::uuid is null or r.parent = %(parent)s::uuid)
  and (%(labels)s::jsonb is null or (r.labels @> %(labels)s::jsonb and r.labels <> '{}'))
order by r.id desc limit %(limit)s

-- name: ended_runs
-- Runs that have ended since then, in the order in which they did.
select {run} from afl.run r
where r.finished_at >= %(since)s order by r.finished_at, r.id limit %(limit)s

-- name: forget_runs
-- Removes a batch of runs that ended long ago.
select afl.forget_runs_v1(%(older_than)s::interval, %(limit)s::int, %(steps)s::int)

-- name: stale_runs
-- Runs that have not ended, the oldest first, and whether their tasks are closed.
select r.id::text, coalesce(t.state = 'closed', false)
from (
    (select c.id from afl.run c
     where c.state = 'created' and c.id > %(after)s::uuid order by c.id limit %(limit)s)
    union all
    (select c.id from afl.run c
     where c.state = 'running' and c.id > %(after)s::uuid order by c.id limit %(limit)s)
    order by id limit %(limit)s
) as r
left join afl.task t on t.id = r.id
order by r.id
