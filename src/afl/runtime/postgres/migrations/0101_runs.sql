-- What runs are made of, beside the kernel's rows. Steps are written in the transaction that
-- commits their run's flow task and under its fence, so nothing here needs a lock of its own.
-- There are no foreign keys: a run is removed whole.

create table afl.program (
    hash     text primary key,
    text     text not null,
    saved_at timestamptz not null
);

-- The current program under each name.
create table afl.deployment (
    name        text primary key,
    program     text not null,
    deployed_at timestamptz not null
);

-- One execution of a workflow; the id is that of its flow task. Written when a run begins and when
-- it ends, and not in between.
create table afl.run (
    id              uuid primary key,
    program         text not null,
    workflow        text not null,
    inputs          json not null,
    state           text not null,
    outputs         json,
    error           json,
    labels          jsonb not null,
    key             text,
    priority        integer not null,
    tenant          text not null,
    parent          uuid,
    parent_path     text collate "C",
    fork            json,
    fork_run        uuid,
    pause_requested boolean not null,
    created_at      timestamptz not null,
    finished_at     timestamptz,
    constraint run_state check (
        state in ('created', 'running', 'paused', 'completed', 'failed', 'canceled')
        and (state in ('completed', 'failed', 'canceled')) = (finished_at is not null))
) with (fillfactor = 80);

create index run_by_state on afl.run (state, id);
create index run_by_workflow on afl.run (workflow, id);
create index run_by_parent on afl.run (parent, id) where parent is not null;
create index run_by_label on afl.run using gin (labels jsonb_path_ops) where labels <> '{}';
create index run_finished on afl.run (finished_at, id) where finished_at is not null;
-- Live forks, which may still take work from the run they were forked from.
create index run_fork on afl.run (fork_run) where fork_run is not null and finished_at is null;

-- One node of a run. No index covers what changes, and pages have room, so that a change stays in
-- its page and touches no index. Empty maps are kept as null.
create table afl.step (
    run             uuid not null,
    path            text collate "C" not null,
    object_type     text not null,
    statement_id    text not null,
    facet_name      text not null,
    state           text not null,
    skipped_because text collate "C",
    yields_to       text collate "C",
    created_at      timestamptz not null,
    changed_at      timestamptz not null,
    ended_at        timestamptz,
    frame           json,
    error           json,
    returns         json,
    params          json,
    primary key (run, path)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);

-- The yields that a step takes.
create index step_yields on afl.step (run, yields_to) where yields_to is not null;

-- Blocks that wait for a step outside of them.
create table afl.step_wait (
    run     uuid not null,
    on_path text collate "C" not null,
    block   text collate "C" not null,
    primary key (run, on_path, block)
);

-- Lines of sys.log, in the order in which they were written.
create table afl.step_log (
    run    uuid not null,
    number bigint generated always as identity,
    path   text collate "C" not null,
    line   json not null,
    at     timestamptz not null,
    primary key (run, number)
);

-- Events from outside. One that was taken by a call has its run and key; one that is settled is
-- kept for its id alone. `fresh` is what nobody has looked for a wait for.
create table afl.signal (
    id         text primary key,
    number     bigint generated always as identity,
    name       text not null,
    key        text not null,
    payload    json,
    fresh      boolean not null default true,
    run        uuid,
    call_key   text collate "C",
    emitted_at timestamptz not null,
    settled_at timestamptz,
    constraint signal_taken check (
        (run is null) = (call_key is null) and (settled_at is null or run is not null))
);

create index signal_fresh on afl.signal (number) where fresh;
create index signal_untaken on afl.signal (name, key, number) where run is null;
create index signal_unsettled on afl.signal (number) where run is not null and settled_at is null;
create unique index signal_call on afl.signal (run, call_key) where run is not null;
create index signal_settled on afl.signal (settled_at) where settled_at is not null;

-- Calls that wait for an event. `fresh` is what nobody has looked for an event for.
create table afl.signal_wait (
    run      uuid not null,
    call_key text collate "C" not null,
    number   bigint generated always as identity,
    name     text not null,
    key      text not null,
    fresh    boolean not null default true,
    primary key (run, call_key)
);

create index signal_wait_fresh on afl.signal_wait (number) where fresh;
create index signal_wait_topic on afl.signal_wait (name, key, number);

-- Results of pure facets.
create table afl.memo (
    facet      text not null,
    key        text not null,
    returns    json not null,
    made_at    timestamptz not null,
    expires_at timestamptz,
    primary key (facet, key)
);

create index memo_expiry on afl.memo (expires_at) where expires_at is not null;
