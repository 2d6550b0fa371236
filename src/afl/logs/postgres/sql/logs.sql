-- name: home
-- The name of this database among those that a NATS server serves.
select id from afl.log_home

-- name: position
-- Up to where a spool is stored.
select position from afl.log_spool where id = %(spool)s

-- name: heard
-- Notes that a worker is alive.
insert into afl.log_spool (id, worker, heard_at) values (%(spool)s, %(worker)s, afl.now())
on conflict (id) do update set heard_at = excluded.heard_at

-- name: meet_spools
-- Makes spools known.
insert into afl.log_spool (id, worker, heard_at)
select id, worker, afl.now() from unnest(%(ids)s::text[], %(workers)s::text[]) as t (id, worker)
order by id
on conflict (id) do nothing

-- name: lock_spools
-- Up to where spools are stored. Whoever asks has them until the end of its transaction.
select id, position from afl.log_spool where id = any(%(ids)s::text[]) order by id for update

-- name: meet_streams
-- Makes streams known.
insert into afl.log_stream (id, run, path, attempt, name, spool, opened_us, last_us)
select id, run, path, attempt, name, spool, opened_us, opened_us
from unnest(%(ids)s::uuid[], %(runs)s::text[], %(paths)s::text[], %(attempts)s::int[],
            %(names)s::text[], %(spools)s::text[], %(opened)s::bigint[])
    as t (id, run, path, attempt, name, spool, opened_us)
order by id
on conflict (id) do nothing

-- name: lock_streams
-- How far streams are stored. Whoever asks has them until the end of its transaction.
select id, next_seq from afl.log_stream where id = any(%(ids)s::uuid[]) order by id for update

-- name: add_chunks
-- Adds chunks.
insert into afl.log_chunk (stream, first_seq, count, kind, level, first_us, last_us, body)
select * from unnest(%(streams)s::uuid[], %(firsts)s::bigint[], %(counts)s::int[],
                     %(kinds)s::smallint[], %(levels)s::smallint[], %(first_us)s::bigint[],
                     %(last_us)s::bigint[], %(bodies)b::bytea[])
on conflict (stream, first_seq) do nothing

-- name: grow_streams
-- Notes how far streams are stored.
update afl.log_stream s set next_seq = t.next_seq, last_us = greatest(s.last_us, t.last_us)
from unnest(%(ids)s::uuid[], %(nexts)s::bigint[], %(last_us)s::bigint[])
    as t (id, next_seq, last_us)
where s.id = t.id

-- name: close_streams
-- Ends streams that have not ended.
update afl.log_stream s set closed_us = t.closed_us, lost = t.lost
from unnest(%(ids)s::uuid[], %(closed_us)s::bigint[], %(lost)s::text[]) as t (id, closed_us, lost)
where s.id = t.id and s.closed_us is null

-- name: move_spools
-- Notes up to where spools are stored.
update afl.log_spool s set position = t.position, heard_at = afl.now()
from unnest(%(ids)s::text[], %(positions)s::bigint[]) as t (id, position)
where s.id = t.id

-- name: streams
-- The streams of a run, the first first.
select s.id, s.run, s.path, s.attempt, s.name, s.next_seq, s.opened_us, s.last_us, s.closed_us,
    s.lost, coalesce((extract(epoch from p.heard_at) * 1000000)::bigint, 0)
from afl.log_stream s left join afl.log_spool p on p.id = s.spool
where s.run = %(run)s
order by s.opened_us, s.id

-- name: latest_streams
-- The streams of all runs that have said something last, the first first.
select * from (
    select s.id, s.run, s.path, s.attempt, s.name, s.next_seq, s.opened_us, s.last_us, s.closed_us,
        s.lost, coalesce((extract(epoch from p.heard_at) * 1000000)::bigint, 0)
    from afl.log_stream s left join afl.log_spool p on p.id = s.spool
    order by s.last_us desc limit %(limit)s
) as latest
order by opened_us, id

-- name: heads
-- Chunks of streams, each from a line on, without their lines.
select c.stream, c.first_seq, c.count, c.kind, c.level, c.first_us, c.last_us
from unnest(%(streams)s::uuid[], %(firsts)s::bigint[]) as t (stream, first_seq)
join afl.log_chunk c on c.stream = t.stream and c.first_seq >= t.first_seq

-- name: bodies
-- The lines of chunks.
select c.stream, c.first_seq, c.body
from unnest(%(streams)s::uuid[], %(firsts)s::bigint[]) as t (stream, first_seq)
join afl.log_chunk c on c.stream = t.stream and c.first_seq = t.first_seq

-- name: rotate
-- Removes streams whose last line is old, with their chunks.
with old as (
    select id from afl.log_stream
    where last_us <= (extract(epoch from afl.now() - %(older_than)s::interval) * 1000000)::bigint
    order by last_us limit %(limit)s for update skip locked
), chunks as (
    delete from afl.log_chunk c using old where c.stream = old.id
), streams as (
    delete from afl.log_stream s using old where s.id = old.id
)
select count(*) from old

-- name: rotate_spools
-- Forgets spools that were not heard of for long.
delete from afl.log_spool where heard_at <= afl.now() - %(older_than)s::interval

-- name: now
-- The clock of the database.
select (extract(epoch from afl.now()) * 1000000)::bigint
