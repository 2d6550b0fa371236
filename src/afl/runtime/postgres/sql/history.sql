-- name: open_work
-- The live callees of a run, so many at most, counted by what their steps are and where they stand.
select s.statement_id, s.facet_name, s.object_type, s.state, t.kind, t.state,
       t.run_at <= afl.now(), coalesce(w.expires_at <= afl.now(), false), count(*)
from (
    select x.parent_call, x.kind, x.state, x.run_at, x.worker from afl.task x
    where x.caller = %(run)s::uuid and x.parent_call is not null and x.state <> 'closed'
    limit %(limit)s
) as t
join afl.call c on c.id = t.parent_call and c.status = 'open'
join afl.step s on s.run = %(run)s::uuid and s.path = split_part(c.key, '#', 1)
left join afl.worker w on w.id = t.worker
group by 1, 2, 3, 4, 5, 6, 7, 8

-- name: dead_work
-- The failed steps of a run, so many at most, whose work was given up, counted by statement.
select s.statement_id, count(*)
from (
    select x.path, x.statement_id from afl.step x
    where x.run = %(run)s::uuid and x.error is not null and x.state = 'state.statement.Error'
    limit %(limit)s
) as s
join afl.call c on c.caller = %(run)s::uuid and c.key = s.path
join afl.task t on t.id = c.callee and t.dead
group by s.statement_id

-- name: history
-- What happened to the steps of a run, the last first.
select e.at, e.path, e.what, e.facet_name, e.worker, e.task, e.error, e.skipped_because, e.reused
from (
    select s.created_at as at, s.path, 'started' collate "C" as what, s.facet_name,
           null as worker, null as task, null::json as error, null as skipped_because,
           null as reused
    from afl.step s
    where s.run = %(run)s::uuid and s.object_type = any(%(types)s::text[])
      and s.skipped_because is null
      and (not %(problems_only)s::boolean or s.error is not null)
    union all
    select s.ended_at, s.path,
           case s.state when 'state.statement.Complete' then 'done'
                        when 'state.statement.Error' then 'failed' else 'skipped' end,
           s.facet_name, null, null, s.error, s.skipped_because, s.frame ->> 'reused'
    from afl.step s
    where s.run = %(run)s::uuid and s.object_type = any(%(types)s::text[])
      and s.ended_at is not null and (not %(problems_only)s::boolean or s.error is not null)
    union all
    select l.lost_at, split_part(coalesce(c.key, ''), '#', 1), 'lost',
           coalesce(t.input ->> 'facet', ''), l.worker, l.task::text, null, null, null
    from afl.loss l
    join afl.task t on t.id = l.task
    left join afl.call c on c.id = t.parent_call and t.caller = %(run)s::uuid
    where t.caller = %(run)s::uuid or t.id = %(run)s::uuid
    union all
    select r.noted_at, r.path, 'superseded', coalesce(s.facet_name, ''), r.worker, null, null,
           null, null
    from afl.superseded_result r
    left join afl.step s on s.run = r.run and s.path = r.path
    where r.run = %(run)s::uuid
) as e
where %(at)s::timestamptz is null
   or (e.at, e.path collate "C", e.what collate "C")
      < (%(at)s::timestamptz, %(path)s::text collate "C", %(what)s::text collate "C")
order by e.at desc, e.path collate "C" desc, e.what collate "C" desc
limit %(limit)s

-- name: forks_of
-- The runs that took work from a run, the newest first.
select {run} from afl.run r where r.fork_run = %(run)s::uuid order by r.id desc limit %(limit)s
