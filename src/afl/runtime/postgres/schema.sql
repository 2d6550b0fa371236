-- What the runtime adds to the kernel's schema, as its migrations leave it. A test compares them.

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
create index run_by_workflow_state on afl.run (workflow, state, id);
create index run_by_tenant on afl.run (tenant, id) where tenant <> 'default';
create index run_by_parent on afl.run (parent, id) where parent is not null;
create index run_top on afl.run (id) where parent is null;
create index run_top_by_state on afl.run (state, id) include (tenant) where parent is null;
create index run_paused on afl.run (id)
    where (pause_requested or state = 'paused') and finished_at is null;
create index run_errors on afl.run (id) where error is not null;
create index run_by_key on afl.run (lower(key)) where key is not null;
create index run_by_label on afl.run using gin (labels jsonb_path_ops) where labels <> '{}';
create index run_finished on afl.run (finished_at, id) where finished_at is not null;
-- Live forks, which may still take work from the run they were forked from.
create index run_fork on afl.run (fork_run) where fork_run is not null and finished_at is null;
-- The forks of a run, also those that have ended.
create index run_by_fork on afl.run (fork_run, id) where fork_run is not null;

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
    was             text,
    was_kind        text[],
    primary key (run, path)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);

-- The yields that a step takes.
create index step_yields on afl.step (run, yields_to) where yields_to is not null;
-- The steps with an error. A change of another step does not touch it.
create index step_problems on afl.step (run, path) where error is not null;

-- How many steps of a run are in which state, by statement; kept by what writes the steps. A kind
-- of step that there are none of any more keeps its row, with a zero.
create table afl.step_tally (
    run          uuid not null,
    statement_id text collate "C" not null,
    facet_name   text collate "C" not null,
    object_type  text collate "C" not null,
    state        text collate "C" not null,
    steps        bigint not null,
    primary key (run, statement_id, facet_name, object_type, state)
) with (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);

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

-- Writes that are more than one statement, each in one round trip.

-- Steps, waits, log lines and awaited events of any number of runs, as arrays that run in
-- parallel. A step that is there is replaced; what is large and the same is not written again.
--
-- The tally is kept here because that costs least. `was` is the state that a step had before, which
-- only the update itself knows, and `was_kind` all that it was counted by, if that has changed:
-- triggers on the steps take twice the time, and to look the states up before takes three times as
-- much. To add up what is counted more than once is a third of the rest, and most turns need not:
-- so `p_distinct` says that no two steps of a run are of one statement, with which a step stays.
create function afl.write_changes_v2(
    p_runs uuid[], p_paths text[], p_types text[], p_statements text[], p_facets text[],
    p_states text[], p_params json[], p_returns json[], p_errors json[], p_because text[],
    p_yields_to text[], p_frames json[],
    p_wait_runs uuid[], p_wait_on text[], p_wait_blocks text[],
    p_log_runs uuid[], p_log_paths text[], p_log_lines json[],
    p_await_runs uuid[], p_await_calls text[], p_await_names text[], p_await_keys text[],
    p_distinct boolean
) returns void language plpgsql as $$
declare
    v_now timestamptz := afl.now();
begin
    if p_runs is not null then
        if p_distinct then
            with written as (
                insert into afl.step as s (
                    run, path, object_type, statement_id, facet_name, state, params, returns, error,
                    skipped_because, yields_to, frame, created_at, changed_at, ended_at)
                select n.run, n.path, n.object_type, n.statement_id, n.facet_name, n.state,
                       n.params, n.returns, n.error, n.skipped_because, n.yields_to, n.frame, v_now,
                       v_now,
                       case when n.state in ('state.statement.Complete', 'state.statement.Error',
                                             'state.statement.Skipped') then v_now end
                from unnest(p_runs, p_paths, p_types, p_statements, p_facets, p_states, p_params,
                            p_returns, p_errors, p_because, p_yields_to, p_frames)
                    as n (run, path, object_type, statement_id, facet_name, state, params, returns,
                          error, skipped_because, yields_to, frame)
                on conflict (run, path) do update set
                    object_type = excluded.object_type,
                    statement_id = excluded.statement_id,
                    facet_name = excluded.facet_name,
                    state = excluded.state,
                    params = case when excluded.params::text = '"="' then s.params
                                  when s.params::text = excluded.params::text then s.params
                                  else excluded.params end,
                    returns = case when s.returns::text = excluded.returns::text
                                   then s.returns else excluded.returns end,
                    error = excluded.error,
                    skipped_because = excluded.skipped_because,
                    yields_to = excluded.yields_to,
                    frame = excluded.frame,
                    changed_at = excluded.changed_at,
                    ended_at = case when excluded.ended_at is not null
                                    then coalesce(s.ended_at, excluded.ended_at) end,
                    was = case when (s.statement_id, s.facet_name, s.object_type)
                                  = (excluded.statement_id, excluded.facet_name,
                                     excluded.object_type)
                               then s.state end,
                    was_kind = case
                        when (s.statement_id, s.facet_name, s.object_type)
                          <> (excluded.statement_id, excluded.facet_name, excluded.object_type)
                        then array[s.statement_id, s.facet_name, s.object_type, s.state] end
                returning s.run, s.statement_id, s.facet_name, s.object_type, s.state, s.was,
                          s.was_kind
            )
            insert into afl.step_tally as t (
                run, statement_id, facet_name, object_type, state, steps)
            select w.run, d.statement_id, d.facet_name, d.object_type, d.state, d.steps
            from written w cross join lateral (values
                (w.statement_id, w.facet_name, w.object_type, w.state, 1),
                (w.statement_id, w.facet_name, w.object_type, w.was, -1),
                (w.was_kind[1], w.was_kind[2], w.was_kind[3], w.was_kind[4], -1)
            ) as d (statement_id, facet_name, object_type, state, steps)
            where w.was is distinct from w.state and d.state is not null
            on conflict (run, statement_id, facet_name, object_type, state)
            do update set steps = t.steps + excluded.steps;
        else
            with written as (
                insert into afl.step as s (
                    run, path, object_type, statement_id, facet_name, state, params, returns, error,
                    skipped_because, yields_to, frame, created_at, changed_at, ended_at)
                select n.run, n.path, n.object_type, n.statement_id, n.facet_name, n.state,
                       n.params, n.returns, n.error, n.skipped_because, n.yields_to, n.frame, v_now,
                       v_now,
                       case when n.state in ('state.statement.Complete', 'state.statement.Error',
                                             'state.statement.Skipped') then v_now end
                from unnest(p_runs, p_paths, p_types, p_statements, p_facets, p_states, p_params,
                            p_returns, p_errors, p_because, p_yields_to, p_frames)
                    as n (run, path, object_type, statement_id, facet_name, state, params, returns,
                          error, skipped_because, yields_to, frame)
                on conflict (run, path) do update set
                    object_type = excluded.object_type,
                    statement_id = excluded.statement_id,
                    facet_name = excluded.facet_name,
                    state = excluded.state,
                    params = case when excluded.params::text = '"="' then s.params
                                  when s.params::text = excluded.params::text then s.params
                                  else excluded.params end,
                    returns = case when s.returns::text = excluded.returns::text
                                   then s.returns else excluded.returns end,
                    error = excluded.error,
                    skipped_because = excluded.skipped_because,
                    yields_to = excluded.yields_to,
                    frame = excluded.frame,
                    changed_at = excluded.changed_at,
                    ended_at = case when excluded.ended_at is not null
                                    then coalesce(s.ended_at, excluded.ended_at) end,
                    was = case when (s.statement_id, s.facet_name, s.object_type)
                                  = (excluded.statement_id, excluded.facet_name,
                                     excluded.object_type)
                               then s.state end,
                    was_kind = case
                        when (s.statement_id, s.facet_name, s.object_type)
                          <> (excluded.statement_id, excluded.facet_name, excluded.object_type)
                        then array[s.statement_id, s.facet_name, s.object_type, s.state] end
                returning s.run, s.statement_id, s.facet_name, s.object_type, s.state, s.was,
                          s.was_kind
            )
            insert into afl.step_tally as t (
                run, statement_id, facet_name, object_type, state, steps)
            select w.run, d.statement_id, d.facet_name, d.object_type, d.state, sum(d.steps)
            from written w cross join lateral (values
                (w.statement_id, w.facet_name, w.object_type, w.state, 1),
                (w.statement_id, w.facet_name, w.object_type, w.was, -1),
                (w.was_kind[1], w.was_kind[2], w.was_kind[3], w.was_kind[4], -1)
            ) as d (statement_id, facet_name, object_type, state, steps)
            where w.was is distinct from w.state and d.state is not null
            group by w.run, d.statement_id, d.facet_name, d.object_type, d.state
            having sum(d.steps) <> 0
            on conflict (run, statement_id, facet_name, object_type, state)
            do update set steps = t.steps + excluded.steps;
        end if;
    end if;
    if p_wait_runs is not null then
        insert into afl.step_wait (run, on_path, block)
        select * from unnest(p_wait_runs, p_wait_on, p_wait_blocks)
        on conflict do nothing;
    end if;
    if p_log_runs is not null then
        insert into afl.step_log (run, path, line, at)
        select n.run, n.path, n.line, v_now
        from unnest(p_log_runs, p_log_paths, p_log_lines) with ordinality
            as n (run, path, line, place)
        order by n.place;
    end if;
    if p_await_runs is not null then
        insert into afl.signal_wait (run, call_key, name, key)
        select n.run, n.call_key, n.name, n.key
        from unnest(p_await_runs, p_await_calls, p_await_names, p_await_keys) with ordinality
            as n (run, call_key, name, key, place)
        where not exists (
            select from afl.signal s where s.run = n.run and s.call_key = n.call_key)
        order by n.place
        on conflict do nothing;
    end if;
end $$;

-- The same, for workers of the version before.
create function afl.write_changes_v1(
    p_runs uuid[], p_paths text[], p_types text[], p_statements text[], p_facets text[],
    p_states text[], p_params json[], p_returns json[], p_errors json[], p_because text[],
    p_yields_to text[], p_frames json[],
    p_wait_runs uuid[], p_wait_on text[], p_wait_blocks text[],
    p_log_runs uuid[], p_log_paths text[], p_log_lines json[],
    p_await_runs uuid[], p_await_calls text[], p_await_names text[], p_await_keys text[]
) returns void language sql as $$
    select afl.write_changes_v2(
        p_runs, p_paths, p_types, p_statements, p_facets, p_states,
        p_params, p_returns, p_errors, p_because, p_yields_to, p_frames,
        p_wait_runs, p_wait_on, p_wait_blocks, p_log_runs, p_log_paths, p_log_lines,
        p_await_runs, p_await_calls, p_await_names, p_await_keys,
        false)
$$;

-- How a call ended that takes no answer any more; null if it does, or if nobody knows it.
create function afl.call_ending_v1(p_run uuid, p_key text) returns text
language sql stable as $$
    select case when c.status <> 'open' then c.status
                when t.state = 'closed' then 'canceled' end
    from afl.call c join afl.task t on t.id = c.caller
    where c.caller = p_run and c.key = p_key
$$;

-- The oldest event to the oldest call that waits for it, as long as there are both. Nobody else
-- may do this at the same time.
create function afl.pair_signals_v1(p_name text, p_key text) returns void language plpgsql as $$
declare
    v_wait afl.signal_wait;
    v_signal text;
begin
    loop
        select s.id into v_signal from afl.signal s
        where s.name = p_name and s.key = p_key and s.run is null
        order by s.number limit 1;
        exit when not found;
        select w.* into v_wait from afl.signal_wait w
        where w.name = p_name and w.key = p_key
        order by w.number limit 1;
        exit when not found;
        delete from afl.signal_wait w where w.run = v_wait.run and w.call_key = v_wait.call_key;
        continue when not found;  -- its run has just ended
        if afl.call_ending_v1(v_wait.run, v_wait.call_key) is null then
            update afl.signal s set run = v_wait.run, call_key = v_wait.call_key, fresh = false
            where s.id = v_signal;
        end if;
    end loop;
end $$;

-- Pairs of waiting calls and events that are not settled. Only what has come since the last look is
-- looked at: whichever of the two comes later finds the other.
create function afl.match_signals_v1(p_limit int)
returns table (run uuid, call_key text, payload json) language plpgsql as $$
declare
    v_signals text[];
    v_waits bigint[];
    r record;
begin
    -- one at a time: two could each look for what the other one has not seen yet
    perform pg_advisory_xact_lock(hashtextextended('afl signals', 0));
    -- an event whose call has ended otherwise is for the next one
    update afl.signal s set run = null, call_key = null, fresh = true
    where s.run is not null and s.settled_at is null
      and afl.call_ending_v1(s.run, s.call_key) <> 'ok';
    v_signals := array(
        select s.id from afl.signal s where s.fresh order by s.number limit p_limit);
    v_waits := array(
        select w.number from afl.signal_wait w where w.fresh order by w.number limit p_limit);
    for r in
        select s.name, s.key from afl.signal s where s.id = any(v_signals)
        union
        select w.name, w.key from afl.signal_wait w where w.fresh and w.number = any(v_waits)
    loop
        perform afl.pair_signals_v1(r.name, r.key);
    end loop;
    -- exactly those: what has come meanwhile was perhaps not seen
    update afl.signal s set fresh = false where s.id = any(v_signals) and s.fresh;
    update afl.signal_wait w set fresh = false where w.fresh and w.number = any(v_waits);
    return query
        select s.run, s.call_key, s.payload from afl.signal s
        where s.run is not null and s.settled_at is null
        order by s.number limit p_limit;
end $$;

-- Removes runs that ended that long ago, whole, the first first, until about that many steps have
-- gone. Those that others need stay: a run that was called goes after its caller, so perhaps next
-- time.
create function afl.forget_runs_v1(p_older_than interval, p_limit int, p_steps int)
returns int language plpgsql as $$
declare
    v_before timestamptz := afl.now() - p_older_than;
    v_gone int := 0;
    v_steps bigint := 0;
    v_count bigint;
    r record;
begin
    for r in
        select n.id, n.parent from afl.run n where n.finished_at <= v_before
        order by n.finished_at, n.id
    loop
        exit when v_gone >= p_limit or v_steps >= p_steps;
        continue when exists (select from afl.run p where p.id = r.parent)
            or exists (select from afl.run f where f.fork_run = r.id and f.finished_at is null);
        perform from afl.run n where n.id = r.id for update skip locked;
        continue when not found;  -- somebody else forgets it
        delete from afl.step s where s.run = r.id;
        get diagnostics v_count = row_count;
        v_steps := v_steps + v_count;
        delete from afl.step_tally t where t.run = r.id;
        delete from afl.step_wait w where w.run = r.id;
        delete from afl.step_log l where l.run = r.id;
        delete from afl.signal_wait w where w.run = r.id;
        delete from afl.run n where n.id = r.id;
        v_gone := v_gone + 1;
    end loop;
    delete from afl.signal s where s.settled_at <= v_before;
    delete from afl.memo m where m.expires_at <= v_before;
    return v_gone;
end $$;

-- Slots in time, for facets that may start only so often. A slot is taken before the call that uses
-- it is committed; one that is lost in between is wasted, and nothing else.

-- The last slot of a facet and a key, and how many before it may matter.
create table afl.rate (
    facet   text not null,
    key     text not null,
    last    bigint not null,
    most    integer not null,
    ends_at timestamptz not null,
    primary key (facet, key)
);

create index rate_end on afl.rate (ends_at);

create table afl.rate_slot (
    facet     text not null,
    key       text not null,
    number    bigint not null,
    starts_at timestamptz not null,
    primary key (facet, key, number)
);

-- Takes the next slots: each starts no earlier than the one `p_max` before it plus `p_per`. So of
-- any `p_max` + 1 of them two are a multiple of `p_max` apart, and lie in no common stretch.
create function afl.reserve_slots_v1(
    p_facet text, p_key text, p_max int, p_per interval, p_count int
) returns setof interval language plpgsql as $$
declare
    v_now timestamptz;
    v_last bigint;
    v_most int;
    v_start timestamptz;
begin
    -- the row is the lock; what is read after it is what others have left
    insert into afl.rate as r (facet, key, last, most, ends_at)
    values (p_facet, p_key, p_count, p_max, afl.now())
    on conflict (facet, key) do update set
        last = r.last + p_count, most = greatest(r.most, p_max)
    returning r.last, r.most into v_last, v_most;
    v_now := afl.now();
    for v_number in v_last - p_count + 1 .. v_last loop
        select greatest(v_now, s.starts_at + p_per) into v_start from afl.rate_slot s
        where s.facet = p_facet and s.key = p_key and s.number = v_number - p_max;
        v_start := coalesce(v_start, v_now);
        insert into afl.rate_slot (facet, key, number, starts_at)
        values (p_facet, p_key, v_number, v_start);
        return next v_start - v_now;
    end loop;
    delete from afl.rate_slot s
    where s.facet = p_facet and s.key = p_key and s.number <= v_last - v_most;
    update afl.rate r set ends_at = greatest(r.ends_at, v_start + p_per)
    where r.facet = p_facet and r.key = p_key;
end $$;

-- Removes slots that have been without effect for that long.
create function afl.forget_rates_v1(p_older_than interval) returns void language plpgsql as $$
declare
    r record;
begin
    for r in
        select n.facet, n.key from afl.rate n where n.ends_at <= afl.now() - p_older_than
        for update skip locked
    loop
        delete from afl.rate_slot s where s.facet = r.facet and s.key = r.key;
        delete from afl.rate n where n.facet = r.facet and n.key = r.key;
    end loop;
end $$;

-- Work that people do is found whatever else is in the queue.
create index task_people on afl.task (id) where list = 'afl.people' and state = 'ready';

-- Schedules, and what became of their fire times. A schedule is changed whole, by whoever knows its
-- version; so each of its fire times is dealt with once, whoever dies.

create table afl.schedule (
    name            text collate "C" primary key,
    workflow        text not null,
    program         text not null,
    inputs          json not null,
    cron            text,
    every           interval,
    at              timestamptz,
    zone            text not null,
    starts_at       timestamptz,
    ends_at         timestamptz,
    jitter          interval not null,
    overlap         text not null,
    catch_up        text not null,
    catch_up_within interval not null,
    owner           text,
    paused          boolean not null,
    next_fire       timestamptz,
    waiting         timestamptz,
    look_at         timestamptz,
    version         bigint not null,
    created_at      timestamptz not null,
    labels          json not null default '{}',
    constraint schedule_times check (num_nonnulls(cron, every, at) = 1)
) with (fillfactor = 80);

create index schedule_look on afl.schedule (look_at) where look_at is not null;
create index schedule_owner on afl.schedule (owner, name) where owner is not null;

create table afl.schedule_firing (
    number   bigint generated always as identity primary key,
    schedule text collate "C" not null,
    fire_at  timestamptz not null,
    outcome  text not null,
    run      uuid,
    until    timestamptz,
    count    integer not null,
    note     text not null,
    at       timestamptz not null,
    constraint firing_outcome check (outcome in ('started', 'skipped', 'missed', 'failed'))
);

create index firing_by_schedule on afl.schedule_firing (schedule, number);
-- A run is started for a fire time once.
create unique index firing_started on afl.schedule_firing (schedule, fire_at) where run is not null;
create index firing_runs on afl.schedule_firing (schedule, number) where run is not null;
create index firing_age on afl.schedule_firing (at);

-- Puts a schedule in the place of the one with that version; none is there with version 0. Processes
-- of the release before name no labels.
create function afl.write_schedule_v1(p_schedule json) returns void language plpgsql as $$
declare
    n afl.schedule := json_populate_record(null::afl.schedule, p_schedule);
    -- one that is made anew under an old name has no version that the old one had
    v_version bigint := extract(epoch from afl.now()) * 1000000;
begin
    if n.version = 0 then
        insert into afl.schedule (
            name, workflow, program, inputs, cron, every, at, zone, starts_at, ends_at, jitter,
            overlap, catch_up, catch_up_within, owner, paused, next_fire, waiting, look_at,
            version, created_at, labels)
        values (
            n.name, n.workflow, n.program, n.inputs, n.cron, n.every, n.at, n.zone, n.starts_at,
            n.ends_at, n.jitter, n.overlap, n.catch_up, n.catch_up_within, n.owner, n.paused,
            n.next_fire, n.waiting, n.look_at, v_version, afl.now(),
            coalesce(n.labels, '{}'))
        on conflict do nothing;
    else
        update afl.schedule s set
            workflow = n.workflow, program = n.program, inputs = n.inputs, cron = n.cron,
            every = n.every, at = n.at, zone = n.zone, starts_at = n.starts_at,
            ends_at = n.ends_at, jitter = n.jitter, overlap = n.overlap, catch_up = n.catch_up,
            catch_up_within = n.catch_up_within, owner = n.owner, paused = n.paused,
            next_fire = n.next_fire, waiting = n.waiting, look_at = n.look_at,
            version = s.version + 1, labels = coalesce(n.labels, s.labels)
        where s.name = n.name and s.version = n.version;
    end if;
    if not found then
        raise exception 'the schedule % was changed meanwhile', n.name using errcode = 'AF001';
    end if;
end $$;

-- Takes schedules that have to be looked at; others leave them alone for a while. Answers them with
-- the time, and when the next one is due: at least one row.
create function afl.take_due_v1(p_hold interval, p_limit int)
returns table (now timestamptz, next_look timestamptz, taken afl.schedule) language plpgsql as $$
declare
    v_now timestamptz := afl.now();
    v_next timestamptz;
    v_any boolean := false;
    r afl.schedule;
begin
    select s.look_at into v_next from afl.schedule s
    where s.look_at > v_now order by s.look_at limit 1;
    for r in
        select s.* from afl.schedule s where s.look_at <= v_now
        order by s.look_at limit p_limit for update skip locked
    loop
        r.look_at := v_now + p_hold;
        update afl.schedule s set look_at = r.look_at where s.name = r.name;
        v_any := true;
        return query select v_now, v_next, r;
    end loop;
    if not v_any then
        return query select v_now, v_next, null::afl.schedule;
    end if;
end $$;

-- Results that came when somebody else had been given the work: what became of it twice.
create table afl.superseded_result (
    run uuid not null references afl.run (id) on delete cascade,
    seq bigint generated always as identity,
    path text not null,
    worker text not null,
    status text not null,
    body json,
    noted_at timestamptz not null default afl.now(),
    primary key (run, seq)
);

-- The files that programs were made of, and which programs were deployed under each name before.
create table afl.program_source (
    program text not null references afl.program (hash) on delete cascade,
    name    text collate "C" not null,
    text    text not null,
    primary key (program, name)
);

create table afl.deployment_version (
    number      bigint generated always as identity primary key,
    name        text not null,
    program     text not null,
    deployed_at timestamptz not null
);

create index deployment_version_name on afl.deployment_version (name, number);
