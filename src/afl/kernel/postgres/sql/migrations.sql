-- name: lock_migrations
-- One process at a time.
select pg_advisory_xact_lock(hashtextextended('afl migrations', 0))

-- name: make_history_schema
-- Where everything lives.
create schema if not exists afl

-- name: make_history
-- What was applied, and when.
create table if not exists afl.migration (
    number     integer primary key,
    name       text not null,
    checksum   text not null,
    applied_at timestamptz not null default clock_timestamp()
)

-- name: has_history
-- Whether anything was ever applied.
select to_regclass('afl.migration') is not null

-- name: read_history
-- What was applied, and when.
select m.number, m.name, m.checksum, m.applied_at from afl.migration m order by m.number

-- name: note_migration
-- This one is applied.
insert into afl.migration (number, name, checksum) values (%(number)s, %(name)s, %(checksum)s)
