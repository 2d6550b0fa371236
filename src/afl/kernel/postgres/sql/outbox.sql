-- name: announce
-- Adds an entry of a caller's own.
insert into afl.outbox (topic, task, run, body, created_at)
values (%(topic)s::text, %(task)s::uuid, %(run)s::text, %(body)s::json, afl.now())

-- name: number_outbox
-- Gives numbers to entries that nobody has read, one reader at a time.
with turn as materialized (select pg_advisory_xact_lock(hashtextextended('afl outbox', 0)))
update afl.outbox o set id = x.id
from (
    select u.entry, nextval('afl.outbox_number') as id from (
        select n.entry from afl.outbox n, turn where n.id is null order by n.entry
        limit %(limit)s) as u
) as x
where o.entry = x.entry and o.id is null

-- name: read_outbox
-- Numbered entries after a number.
select o.id, o.topic, o.task::text, o.run, o.body, o.created_at
from afl.outbox o where o.id > %(after)s order by o.id limit %(limit)s

-- name: trim_outbox
-- Removes entries that have been delivered.
delete from afl.outbox o where o.id <= %(up_to)s
