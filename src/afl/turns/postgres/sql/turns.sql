-- name: turns_of
-- Turns of an agent, the newest first, from before one. A facet may share an agent's lane by its
-- name, so the name of the task counts too.
select {task} from afl.task t
where t.kind = 'turn' and t.tenant = %(tenant)s and t.lane = %(agent)s
  and t.name like 'agent:%%' and t.id < %(before)s::uuid
order by t.id desc limit %(limit)s

-- name: turns_within
-- Turns among the work that a run has called, the oldest first, from after one. The index of runs
-- leaves out what everything began with.
select {task} from afl.task t
where t.run = %(run)s and t.run <> t.id::text and t.kind = 'turn' and t.id > %(after)s::uuid
order by t.id limit %(limit)s

-- name: active_turn
-- The turn that an agent has in hand.
select {task} from afl.task t
where t.kind = 'turn' and t.tenant = %(tenant)s and t.lane = %(agent)s
  and t.name like 'agent:%%'
  and (t.state in ('ready', 'running') or (t.state = 'waiting' and t.hold))
