-- What lists of runs and the pages of runs are read from: indexes for the filters, and tallies.

create index run_by_workflow_state on afl.run (workflow, state, id);
create index run_by_tenant on afl.run (tenant, id) where tenant <> 'default';
create index run_top on afl.run (id) where parent is null;
create index run_paused on afl.run (id)
    where (pause_requested or state = 'paused') and finished_at is null;
create index run_errors on afl.run (id) where error is not null;
create index run_by_key on afl.run (lower(key)) where key is not null;

-- The steps with an error. A change of another step does not touch it.
create index step_problems on afl.step (run, path) where error is not null;

alter table afl.step add was text, add was_kind text[];

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

insert into afl.step_tally (run, statement_id, facet_name, object_type, state, steps)
select s.run, s.statement_id, s.facet_name, s.object_type, s.state, count(*)
from afl.step s group by s.run, s.statement_id, s.facet_name, s.object_type, s.state;

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
create or replace function afl.write_changes_v1(
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

-- Removes runs that ended that long ago, whole, the first first, until about that many steps have
-- gone. Those that others need stay: a run that was called goes after its caller, so perhaps next
-- time.
create or replace function afl.forget_runs_v1(p_older_than interval, p_limit int, p_steps int)
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
