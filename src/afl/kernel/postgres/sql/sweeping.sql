-- name: find_lost_workers
-- Workers that did not renew in time. While this server was away nobody could: after it has started,
-- each has its lease again.
select w.id from afl.worker w
where w.expires_at <= afl.now() and w.state in ('startup', 'running')
  and afl.now() >= afl.up_since() + w.lease
order by w.expires_at, w.id limit %(limit)s

-- name: expire_worker
-- Gives up one worker.
select afl.expire_worker_v1(%(worker)s::text)

-- name: find_lost_tasks
-- What workers hold that did not renew in time.
select {task} from afl.worker w join afl.task t on t.worker = w.id and t.state = 'running'
where w.expires_at <= afl.now() and afl.now() >= afl.up_since() + w.lease
order by w.expires_at, w.id, t.id limit %(limit)s

-- name: recover_task
-- Takes one task from a lost worker.
select afl.recover_v1(%(task)s::uuid, %(error)s::json)

-- name: find_late_calls
-- Open calls past their deadline.
select {call} from afl.call c
where c.replied_at is null and c.deadline <= afl.now()
order by c.deadline, c.id limit %(limit)s

-- name: time_out_call
-- Answers one call as timeout and stops its callee.
select afl.time_out_call_v1(%(call)s::uuid, %(error)s::json)

-- name: find_late_tasks
-- Tasks past their deadline.
select {task} from afl.task t
where t.state <> 'closed' and t.deadline is not null and t.deadline <= afl.now()
order by t.deadline, t.id limit %(limit)s

-- name: time_out_task
-- Closes one task as timeout.
select afl.time_out_task_v1(%(task)s::uuid, %(error)s::json)

-- name: forget_orphans
-- Those that ended by themselves, or were asked to, are no orphans any more.
delete from afl.orphan o using afl.task t
where t.id = o.task and (t.state = 'closed' or t.stop_requested)
returning o.task

-- name: find_orphans
-- Live tasks whose caller is closed.
select t.id::text, t.caller::text from afl.orphan o
join afl.task t on t.id = o.task join afl.task p on p.id = t.caller
where t.state <> 'closed' and not t.stop_requested and p.state = 'closed'
order by t.id limit %(limit)s

-- name: stop_orphan
-- Stops one task whose caller is closed.
select afl.stop_orphan_v1(%(task)s::uuid, %(error)s::json)

-- name: find_free_lanes
-- Lanes that nobody holds and somebody queues for.
select distinct t.tenant, t.lane from afl.task t
where t.state = 'queued'
  and not exists (select from afl.lane l where l.tenant = t.tenant and l.name = t.lane)
order by t.tenant, t.lane limit %(limit)s

-- name: mend_lane
-- Gives one lane to the first that queues for it.
select afl.mend_lane_v1(%(tenant)s::text, %(lane)s::text)

-- name: mend_levels
-- Registers levels that are missing, and removes notes that are old.
select afl.mend_levels_v1()
