-- name: human_tasks
-- Tasks for people whose answers are waited for, the oldest first. The calls are looked up one by
-- one, whatever the statistics say: there are far more of them than people are asked.
select {task} from afl.task t
where t.list = 'afl.people' and t.state = 'ready' and t.id > %(after)s::uuid
  and (select c.status from afl.call c where c.id = t.parent_call) = 'open'
  and (%(group)s::text is null or t.input ->> 'group' = %(group)s)
order by t.id limit %(limit)s
