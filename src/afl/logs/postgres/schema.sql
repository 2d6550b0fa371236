-- Log lines. A row of `log_chunk` has many lines of one stream, as they travelled: lines are written
-- once, read a few times, and never changed. Times are microseconds since 1970.

-- Under which name this database is known to a NATS server that serves several. One row.
create table afl.log_home (
    one boolean primary key default true,
    id  uuid not null default gen_random_uuid(),
    constraint log_home_one check (one)
);

insert into afl.log_home default values;

-- Spools on the disks of workers, each with the position up to which it is stored here. What is
-- stored may be freed there.
create table afl.log_spool (
    id       text collate "C" primary key,
    worker   text not null,
    position bigint not null default 0,
    heard_at timestamptz not null,
    constraint log_spool_position check (position >= 0)
) with (fillfactor = 50);

create index log_spool_old on afl.log_spool (heard_at);

-- What one attempt at a step writes under one name in one process. `lost` says why its end is
-- missing.
create table afl.log_stream (
    id        uuid primary key,
    run       text collate "C" not null,
    path      text collate "C" not null,
    attempt   integer not null,
    name      text not null,
    spool     text collate "C" not null,
    next_seq  bigint not null default 1,
    opened_us bigint not null,
    last_us   bigint not null,
    closed_us bigint,
    lost      text,
    constraint log_stream_seq check (next_seq >= 1),
    constraint log_stream_lost check (lost is null or closed_us is not null)
) with (fillfactor = 70);

create index log_stream_run on afl.log_stream (run, opened_us, id);
create index log_stream_old on afl.log_stream (last_us);

-- Lines from `first_seq` on, or as many missing ones. Kinds: 0 lines, 1 compressed lines, 2 a gap,
-- whose body is the reason.
create table afl.log_chunk (
    stream    uuid not null,
    first_seq bigint not null,
    count     integer not null,
    kind      smallint not null,
    level     smallint not null,
    first_us  bigint not null,
    last_us   bigint not null,
    body      bytea not null,
    primary key (stream, first_seq),
    constraint log_chunk_sense check (first_seq >= 1 and count >= 1 and kind in (0, 1, 2))
);

-- bodies are compressed where it is worth it
alter table afl.log_chunk alter column body set storage external;

create index log_chunk_gap on afl.log_chunk (stream) where kind = 2;

-- What is missing of the lines that were written. Without `last_seq`, it is not known how much.
create view afl.log_gap as
select s.run, s.path, s.attempt, s.name, c.stream, c.first_seq,
    c.first_seq + c.count - 1 as last_seq, convert_from(c.body, 'UTF8') as reason,
    to_timestamp(c.first_us / 1e6) as at
from afl.log_chunk c join afl.log_stream s on s.id = c.stream
where c.kind = 2
union all
select s.run, s.path, s.attempt, s.name, s.id, s.next_seq, null, s.lost,
    to_timestamp(s.closed_us / 1e6)
from afl.log_stream s
where s.lost is not null;
