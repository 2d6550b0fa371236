-- name: outermost_runs
-- The first and the last id, each with the time at which its run was put in place.
(select r.id::text, r.created_at from afl.run r order by r.id limit 1)
union all
(select r.id::text, r.created_at from afl.run r order by r.id desc limit 1)

-- name: search_runs
-- Runs, the newest first.
select {run} from afl.run r where {wanted} order by r.id desc limit %(limit)s

-- name: search_newest
-- Those of the newest runs that have labels, the newest first. Only these are read whole: most of
-- those that are looked at are not among them.
select {run} from afl.run r
where r.id in (
    select f.id from (
        select r.id, r.labels from afl.run r where {wanted} order by r.id desc limit %(among)s
    ) as f
    where f.labels @> %(sought)s::jsonb order by f.id desc limit %(limit)s)
order by r.id desc

-- name: search_all
-- Runs, the newest first, all of which are found before the newest are taken: so an index that has
-- another order can serve, which is the better the fewer there are.
with found as materialized (select r.id from afl.run r where {wanted})
select {run} from afl.run r
where r.id in (select f.id from found f order by f.id desc limit %(limit)s)
order by r.id desc

-- name: search_text
-- Runs with a text, the newest first.
select {run} from afl.run r
where r.id in (
    select f.id from ({named} union {looked_for}) as f order by f.id desc limit %(limit)s)
order by r.id desc

-- name: count_runs
-- How many runs there are, up to a limit.
select count(*) from (select from afl.run r where {wanted} limit %(limit)s) as r

-- name: count_together
-- How many runs there are by state word, all of them together up to a limit.
select f.word, count(*) from (
    select case when r.pause_requested and r.finished_at is null then 'paused' else r.state end
    from afl.run r where {wanted} limit %(limit)s
) as f (word)
group by f.word

-- name: look_for_text
-- Runs with a text in their keys or errors.
select f.id::text from {looked_for} as f

-- name: count_named
-- How many runs have a text in their ids or workflows, or are among the given ones, up to a limit.
select least(sum(f.runs), %(limit)s)::bigint from {named_counts} as f
