-- name: get_task
-- One task.
select {task} from afl.task t where t.id = %(task)s::uuid

-- name: get_call
-- One call.
select {call} from afl.call c where c.id = %(call)s::uuid

-- name: calls_of
-- All calls of a task, in the order in which they were made.
select {call} from afl.call c where c.caller = %(task)s::uuid order by c.id

-- name: find_call
-- The call of a task that has this key.
select {call} from afl.call c where c.caller = %(task)s::uuid and c.key = %(key)s

-- name: find_calls
-- The calls of a task that have one of these keys.
select {call} from afl.call c where c.caller = %(task)s::uuid and c.key = any(%(keys)s::text[])

-- name: find_tasks
-- Tasks in the order of their ids.
select {task} from afl.task t
where t.id > %(after)s::uuid
  and (%(state)s::text is null or t.state = %(state)s)
  and (%(outcome)s::text is null or t.outcome = %(outcome)s)
  and (%(dead)s::boolean is null or t.dead = %(dead)s)
order by t.id limit %(limit)s

-- name: find_tasks_of_run
-- Tasks of one run in the order of their ids.
select {task} from (
    select x.* from afl.task x where x.run = %(run)s and x.run <> x.id::text
    union all
    select x.* from afl.task x where x.id = %(root)s::uuid and x.run = %(run)s
) as t
where t.id > %(after)s::uuid
  and (%(state)s::text is null or t.state = %(state)s)
  and (%(outcome)s::text is null or t.outcome = %(outcome)s)
  and (%(dead)s::boolean is null or t.dead = %(dead)s)
order by t.id limit %(limit)s

-- name: why
-- A task with what the present tells: the time, who holds its lane, its first open call, whether it
-- is served.
select afl.now(), l.active::text, exists (
           select from afl.worker w
           where w.expires_at > afl.now() and w.state in ('startup', 'running')
             and t.list = any(w.lists)
             and (t.name = any(w.handlers) or t.short_name = any(w.handlers))),
       {call}, {task}
from afl.task t
left join afl.lane l on l.tenant = t.tenant and l.name = t.lane
left join lateral (
    select * from afl.call x where x.caller = t.id and x.status = 'open'
    order by x.deadline, x.id limit 1) as c on true
where t.id = %(task)s::uuid

-- name: standing
-- What `why` tells, of many tasks.
select afl.now(), l.active::text, exists (
           select from afl.worker w
           where w.expires_at > afl.now() and w.state in ('startup', 'running')
             and t.list = any(w.lists)
             and (t.name = any(w.handlers) or t.short_name = any(w.handlers))),
       {call}, {task}
from afl.task t
left join afl.lane l on l.tenant = t.tenant and l.name = t.lane
left join lateral (
    select * from afl.call x where x.caller = t.id and x.status = 'open'
    order by x.deadline, x.id limit 1) as c on true
where t.id = any(%(tasks)s::uuid[])

-- name: losses_of
-- Which workers tasks have lost.
select l.task::text, l.worker, l.fence, l.lost_at from afl.loss l
where l.task = any(%(tasks)s::uuid[]) order by l.fence

-- name: dead_letters
-- Tasks that were given up and not driven again.
select {task} from afl.task t
where t.dead and t.id > %(after)s::uuid
  and not exists (select from afl.task r where r.redrives = t.id)
order by t.id limit %(limit)s

-- name: find_redrive
-- The task that repeats a dead letter.
select {task} from afl.task t where t.redrives = %(task)s::uuid

-- name: lock_task
-- One task, until the end of the transaction.
select {task} from afl.task t where t.id = %(task)s::uuid for update

-- name: rotate
-- Removes finished runs.
select afl.rotate_v1(%(older_than)s::interval, %(limit)s::int)
