-- Writes that are more than one statement, each in one round trip.

-- Steps, waits, log lines and awaited events of any number of runs, as arrays that run in
-- parallel. A step that is there is replaced; what is large and the same is not written again.
create function afl.write_changes_v1(
    p_runs uuid[], p_paths text[], p_types text[], p_statements text[], p_facets text[],
    p_states text[], p_params json[], p_returns json[], p_errors json[], p_because text[],
    p_yields_to text[], p_frames json[],
    p_wait_runs uuid[], p_wait_on text[], p_wait_blocks text[],
    p_log_runs uuid[], p_log_paths text[], p_log_lines json[],
    p_await_runs uuid[], p_await_calls text[], p_await_names text[], p_await_keys text[]
) returns void language plpgsql as $$
declare
    v_now timestamptz := afl.now();
begin
    if p_runs is not null then
        insert into afl.step as s (
            run, path, object_type, statement_id, facet_name, state, params, returns, error,
            skipped_because, yields_to, frame, created_at, changed_at, ended_at)
        select n.run, n.path, n.object_type, n.statement_id, n.facet_name, n.state, n.params,
               n.returns, n.error, n.skipped_because, n.yields_to, n.frame, v_now, v_now,
               case when n.state in ('state.statement.Complete', 'state.statement.Error',
                                     'state.statement.Skipped') then v_now end
        from unnest(p_runs, p_paths, p_types, p_statements, p_facets, p_states, p_params, p_returns,
                    p_errors, p_because, p_yields_to, p_frames)
            as n (run, path, object_type, statement_id, facet_name, state, params, returns, error,
                  skipped_because, yields_to, frame)
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
                            then coalesce(s.ended_at, excluded.ended_at) end;
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
