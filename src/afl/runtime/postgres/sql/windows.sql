-- name: tallies
-- How many steps of runs there are, by statement and state.
select t.run::text, t.statement_id, t.facet_name, t.object_type, t.state, t.steps
from afl.step_tally t
where t.run = any(%(runs)s::uuid[]) and t.steps <> 0
order by t.run, t.statement_id, t.facet_name, t.object_type, t.state

-- name: child_steps
-- Steps that stand right in another one, by a look at the index for each, and one more to step over
-- what is below it. `seen` is the first path of the rest; `rest` is where the rest after it begins:
-- behind the child itself, or behind all paths below it, which end at the letter after the slash.
with recursive walk (seen, rest, is_child, children) as (
    select null::text collate "C", %(start)s::text collate "C", false, 0
    union all
    select n.seen, case when n.is_child then n.seen || E'\x01' else n.head || '0' end,
           n.is_child, w.children + n.is_child::int
    from walk w
    cross join lateral (
        select s.path as seen,
               substr(s.path, length(%(prefix)s::text) + 1) as tail
        from afl.step s
        where s.run = %(run)s::uuid and s.path >= w.rest and s.path < %(end)s::text
        order by s.path limit 1
    ) as f
    cross join lateral (
        -- a mixin stands at `with/alias`, where `with` is no step
        select f.seen, h.head, f.seen = h.head as is_child
        from (select %(prefix)s::text || case when f.tail like 'with/%%'
                  then 'with/' || split_part(f.tail, '/', 2)
                  else split_part(f.tail, '/', 1) end as head) as h
    ) as n
    where w.children < %(limit)s::int
)
select {step} from walk w join afl.step s on s.run = %(run)s::uuid and s.path = w.seen
where w.is_child
order by s.path

-- name: have_children
-- Those of the paths that anything is below of.
select n.path
from unnest(%(paths)s::text[], %(first)s::text[], %(end)s::text[]) as n (path, first, last)
where exists (
    select from afl.step s
    where s.run = %(run)s::uuid and s.path >= n.first and s.path < n.last)

-- name: problem_steps
-- Steps with an error, in the order of their paths.
select {step} from afl.step s
where s.run = %(run)s::uuid and s.error is not null and s.path >= %(start)s::text
order by s.path limit %(limit)s

-- name: scan_steps
-- Those of the next steps that match, in the order of their paths.
select {step} from (
    select * from afl.step s
    where s.run = %(run)s::uuid and s.path >= %(start)s::text
    order by s.path limit %(most)s
) as s
where (%(states)s::text[] is null or s.state = any(%(states)s::text[]))
  and (%(facet)s::text is null or s.facet_name = %(facet)s::text)
  and (%(statement)s::text is null or s.statement_id = %(statement)s::text)
  and (%(text)s::text is null
       or position(%(text)s::text in lower(s.path)) > 0
       or position(%(text)s::text in lower(s.facet_name)) > 0
       or position(%(text)s::text in lower(s.error ->> 'message')) > 0)
limit %(limit)s

-- name: last_scanned
-- The last of the next steps, if there are so many.
select s.path from afl.step s
where s.run = %(run)s::uuid and s.path >= %(start)s::text
order by s.path offset %(most)s - 1 limit 1

-- name: step_times
-- When steps were made, changed and ended.
select s.path, s.created_at, s.changed_at, s.ended_at from afl.step s
where s.run = %(run)s::uuid and s.path = any(%(paths)s::text[])

-- name: change_mark
-- Which transactions last wrote a run, its flow and the first of the tasks that it waits for.
select concat_ws('-', r.xmin::text, t.xmin::text, c.count, c.mark)
from (select %(run)s::uuid as id) as asked
left join afl.run r on r.id = asked.id
left join afl.task t on t.id = asked.id
cross join lateral (
    select count(*) as count, md5(string_agg(c.id::text || c.xmin::text, '' order by c.id)) as mark
    from (
        select c.id, c.xmin from afl.task c
        where c.caller = asked.id and c.parent_call is not null and c.state <> 'closed'
        order by c.parent_call limit %(most)s
    ) as c
) as c
