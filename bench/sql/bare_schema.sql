-- The least that a queue on PostgreSQL needs: one table, and one index of what can be claimed.
create schema bare;
create table bare.task (
    id         bigint generated always as identity primary key,
    list       text not null default 'default',
    name       text not null default 'billing.Pay',
    state      text not null default 'ready',
    priority   integer not null default 0,
    attempts   integer not null default 0,
    worker     text,
    input      json,
    result     json,
    created_at timestamptz not null default now(),
    changed_at timestamptz not null default now()
) with (fillfactor = 70);
create index task_ready on bare.task (list, name, priority desc, id) where state = 'ready';
