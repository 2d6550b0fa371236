-- name: write_schedule
-- Puts a schedule in the place of the one with its version.
select afl.write_schedule_v1(%(schedule)s::json)

-- name: write_firing
-- Notes what became of a fire time.
insert into afl.schedule_firing (schedule, fire_at, outcome, run, until, count, note, at)
values (%(schedule)s::text, %(fire_at)s::timestamptz, %(outcome)s::text, %(run)s::uuid,
        %(until)s::timestamptz, %(count)s::int, %(note)s::text, afl.now())
on conflict do nothing

-- name: get_schedule
-- One schedule.
select {schedule} from afl.schedule c where c.name = %(name)s

-- name: find_schedules
-- Schedules in order of names.
select {schedule} from afl.schedule c
where (%(owner)s::text is null or c.owner = %(owner)s) and c.name > %(after)s
order by c.name limit %(limit)s

-- name: delete_schedule
-- Removes a schedule with what became of its fire times.
with firings as (delete from afl.schedule_firing f where f.schedule = %(name)s)
delete from afl.schedule c where c.name = %(name)s returning c.name

-- name: take_due
-- Takes schedules that have to be looked at.
select d.now, d.next_look, {due} from afl.take_due_v1(%(hold)s::interval, %(limit)s::int) as d

-- name: get_firings
-- What became of fire times, the last first.
select f.schedule, f.fire_at, f.outcome, f.run::text, f.until, f.count, f.note, f.at
from afl.schedule_firing f
where f.schedule = %(schedule)s
order by f.number desc limit %(limit)s

-- name: get_started
-- The fire times that runs were started for, the last first.
select f.schedule, f.fire_at, f.outcome, f.run::text, f.until, f.count, f.note, f.at
from afl.schedule_firing f
where f.schedule = %(schedule)s and f.run is not null
order by f.number desc limit %(limit)s

-- name: started_between
-- The fire times in a stretch that runs were started for.
select f.fire_at from afl.schedule_firing f
where f.schedule = %(schedule)s and f.run is not null
  and f.fire_at between %(start)s::timestamptz and %(end)s::timestamptz

-- name: open_runs
-- The runs of a schedule that have not ended, of those that it has started last.
select f.run::text
from (
    select o.run, o.number from afl.schedule_firing o
    where o.schedule = %(schedule)s and o.run is not null
    order by o.number desc limit %(limit)s
) as f
join afl.task t on t.id = f.run
where t.state <> 'closed'
order by f.number desc

-- name: forget_firings
-- Removes what became of fire times long ago.
delete from afl.schedule_firing f where f.at <= afl.now() - %(older_than)s::interval
