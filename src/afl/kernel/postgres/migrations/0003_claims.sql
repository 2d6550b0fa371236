-- Taking tasks, and ending them on the short way. For locks, plans and refusals see 0002.

-- What a token took and its worker still holds, in the order of the fences.
create function afl.held_by_token_v1(p_worker text, p_token text)
returns table (t afl.task, replies json) language plpgsql as $$
begin
    return query
        select k, afl.untaken_v1(k.id) from afl.task k
        where k.worker = p_worker and k.state = 'running' and k.claim_token = p_token
        order by k.fence;
end $$;

-- Puts tasks, which are locked and ready, into a worker's hands, with fences in their order.
create function afl.run_v1(p_ids uuid[], p_worker text, p_token text)
returns table (t afl.task, replies json) language plpgsql as $$
declare
    v_fences bigint[] := array(select nextval('afl.fence') from unnest(p_ids));
begin
    return query
        update afl.task k set
            state = 'running', fence = x.fence, last_fence = x.fence, worker = p_worker,
            claim_token = p_token, reason_code = null, reason_since = null, reason_until = null,
            reason_by = null
        from (
            select x.fence, o.ctid as place from unnest(p_ids, v_fences) as x(id, fence)
            cross join lateral (select o.ctid from afl.task o where o.id = x.id limit 1) as o
        ) as x
        where k.ctid = x.place
        -- who has never committed has called nobody
        returning k, case when k.committed_fence is not null then afl.untaken_v1(k.id) end;
end $$;

-- The level with the highest priority below another, for one list and short name, in which
-- something is ready, with the first of that, or whose floor is to be looked below. Who sets the
-- clock, or sets it back, does without the notes of others.
create function afl.level_below_v1(
    p_list text, p_short text, p_priority bigint, p_now timestamptz
) returns table (priority int, run_at timestamptz, id uuid, due boolean) language sql stable as $$
    select l.priority, k.run_at, k.id, coalesce(f.tend_at <= p_now, false)
    from afl.claim_level l
    left join lateral (
        select o.run_at, o.id, o.noted_at, o.look_at, o.tend_at from afl.claim_floor o
        where o.list = l.list and o.short_name = l.short_name and o.priority = l.priority
        order by o.number desc limit 1
    ) as f on f.noted_at <= p_now and coalesce(current_setting('afl.test_clock', true), '') = ''
    left join lateral (
        select o.run_at, o.id from afl.task o
        where o.state = 'ready' and o.list = l.list and o.short_name = l.short_name
          and o.priority = l.priority and o.run_at <= p_now
          and (o.run_at, o.id) >= (coalesce(f.run_at, '-infinity'),
                                   coalesce(f.id, '00000000-0000-0000-0000-000000000000'))
        order by o.run_at, o.id limit 1
    ) as k on true
    where l.list = p_list and l.short_name = p_short and l.priority < p_priority
      and (k.id is not null or f.look_at <= p_now)
    order by l.priority desc limit 1
$$;

-- Keeps the floors of levels, after a claim that took long to find its way, or that saw that one is
-- to be looked below. Tells whether a task was found there.
--
-- While what is done is cleaned up there are no floors. When the way to the first ready task of a
-- level is long, the floor goes there, by whatever name that is and in whoever's hands; but not as
-- far as the present, since what is being written may carry a time a quarter of a second old. What
-- took longer to write comes in below. So one claim at a time looks there, which is the long way:
-- if it finds something, the floor goes back to that; if the way was short, there is no floor now.
create function afl.tend_levels_v1(p_lists text[], p_shorts text[], p_now timestamptz)
returns boolean language plpgsql as $$
declare
    v_nil constant uuid := '00000000-0000-0000-0000-000000000000';
    v_key constant bigint := hashtextextended('afl levels', 0);
    v_top timestamptz := p_now - interval '0.25 s';
    v_below boolean := false;
    v_began timestamptz;
    v_took interval;
    v_at timestamptz;
    v_id uuid;
    v_look timestamptz;
    r record;
begin
    if coalesce(current_setting('afl.test_clock', true), '') <> ''
        -- until the end of this function and not of the transaction, in which much may follow
        or not pg_try_advisory_lock(v_key)
    then
        return false;
    end if;
    for r in
        select l.*, coalesce(f.run_at, '-infinity') as run_at, coalesce(f.id, v_nil) as id,
               coalesce(f.look_at, 'infinity') as look_at
        from afl.claim_level l
        left join lateral (
            select o.run_at, o.id, o.noted_at, o.look_at from afl.claim_floor o
            where o.list = l.list and o.short_name = l.short_name and o.priority = l.priority
            order by o.number desc limit 1
        ) as f on f.noted_at <= p_now
        where l.list = any(p_lists) and l.short_name = any(p_shorts)
          and (f.look_at <= p_now or coalesce(f.noted_at, '-infinity') < v_top)
    loop
        v_began := clock_timestamp();
        v_at := null;
        v_look := r.look_at;
        if r.look_at <= p_now then
            select k.run_at, k.id into v_at, v_id from afl.task k
            where k.state = 'ready' and k.list = r.list and k.short_name = r.short_name
              and k.priority = r.priority and (k.run_at, k.id) < (r.run_at, r.id)
            order by k.run_at, k.id limit 1;
            v_took := clock_timestamp() - v_began;
            v_look := p_now + greatest(interval '2 s', v_took * 20);
            if v_at is not null then
                v_below := true;
            elsif v_took < interval '0.1 ms' then
                v_at := '-infinity';
                v_id := v_nil;
                v_look := 'infinity';
            end if;
        end if;
        if v_at is null then
            select k.run_at, k.id into v_at, v_id from afl.task k
            where k.state = 'ready' and k.list = r.list and k.short_name = r.short_name
              and k.priority = r.priority and (k.run_at, k.id) >= (r.run_at, r.id)
              and k.run_at < v_top
            order by k.run_at, k.id limit 1;
            v_took := clock_timestamp() - v_began;
            -- it takes less for a floor to move than to come into being
            continue when v_took < (case when r.run_at > '-infinity' then interval '0.05 ms'
                                         else interval '0.2 ms' end);
            v_look := least(v_look, p_now + greatest(interval '2 s', v_took * 20));
            if v_at is null then
                v_at := greatest(r.run_at, v_top);
                v_id := case when r.run_at < v_top then v_nil else r.id end;
            end if;
        end if;
        insert into afl.claim_floor (
            list, short_name, priority, run_at, id, noted_at, look_at, tend_at)
        values (
            r.list, r.short_name, r.priority, v_at, v_id, p_now, v_look,
            case when v_look < 'infinity' then p_now + interval '0.25 s' else v_look end);
    end loop;
    perform pg_advisory_unlock(v_key);
    return v_below;
exception
    when others or query_canceled then
        perform pg_advisory_unlock(v_key);
        raise;
end $$;

-- Takes ready tasks of several lists or short names: the first of them all are found in portions
-- that grow, each after the one before, until enough of them are not in the hands of others.
create function afl.take_among_v1(
    p_worker text, p_names text[], p_lists text[], p_shorts text[], p_n int, p_token text,
    p_now timestamptz
) returns table (t afl.task, replies json) language plpgsql as $$
declare
    v_missing int := p_n;
    v_want int := p_n + 16;
    v_found uuid[];
    v_ids uuid[];
    v_priority int := 2147483647;
    v_run_at timestamptz := '-infinity';
    v_id uuid := '00000000-0000-0000-0000-000000000000';
    v_levels int;
    v_due boolean;
    v_tend boolean := false;
    v_began timestamptz;
begin
    while v_missing > 0 loop
        v_began := clock_timestamp();
        with l as materialized (
            select l.*, f.tend_at, coalesce(f.run_at, '-infinity') as run_at,
                   coalesce(f.id, '00000000-0000-0000-0000-000000000000') as id
            from afl.claim_level l
            left join lateral (
                select o.run_at, o.id, o.noted_at, o.tend_at from afl.claim_floor o
                where o.list = l.list and o.short_name = l.short_name and o.priority = l.priority
                order by o.number desc limit 1
            ) as f on f.noted_at <= p_now
                and coalesce(current_setting('afl.test_clock', true), '') = ''
            where l.list = any(p_lists) and l.short_name = any(p_shorts)
              and l.priority <= v_priority
        ), s as (
            select l.list, l.short_name, l.priority,
                   case when l.goes_on then v_run_at else l.run_at end as run_at,
                   case when l.goes_on then v_id else l.id end as id
            from (
                select l.*, l.priority = v_priority and (v_run_at, v_id) > (l.run_at, l.id)
                           as goes_on
                from l
            ) as l
        )
        select array(
                   select k.id from s
                   cross join lateral (
                       select x.id, x.run_at from afl.task x
                       where x.state = 'ready' and x.list = s.list
                         and x.short_name = s.short_name and x.priority = s.priority
                         and x.run_at <= p_now and x.id <> v_id
                         and (x.run_at, x.id) >= (s.run_at, s.id)
                         and (x.short_name = any(p_names) or x.name = any(p_names))
                       order by x.run_at, x.id limit v_want
                   ) as k
                   order by s.priority desc, k.run_at, k.id limit v_want),
               count(*), coalesce(bool_or(l.tend_at <= p_now), false)
        into v_found, v_levels, v_due from l;
        v_tend := v_tend or v_due
            or clock_timestamp() - v_began > interval '0.2 ms' + v_levels * interval '20 us';
        v_ids := array(
            select k.id from afl.task k
            where k.id = any(v_found) and case when k.state = 'ready' then k.run_at <= p_now end
            order by k.priority desc, k.run_at, k.id limit v_missing
            for update of k skip locked);
        return query select r.t, r.replies from afl.run_v1(v_ids, p_worker, p_token) as r;
        v_missing := v_missing - cardinality(v_ids);
        if cardinality(v_found) = v_want then
            select k.priority, k.run_at, k.id into v_priority, v_run_at, v_id from afl.task k
            where k.id = v_found[v_want];
            v_want := v_want * 4;
        else
            -- all over again, if something has come in below a floor
            exit when not v_tend or not afl.tend_levels_v1(p_lists, p_shorts, p_now);
            v_tend := false;
            v_priority := 2147483647;
            v_run_at := '-infinity';
        end if;
    end loop;
    if v_missing <= 0 and v_tend then
        perform afl.tend_levels_v1(p_lists, p_shorts, p_now);
    end if;
end $$;

-- Whether it is time to see to the floors of a list and short name.
create function afl.floor_is_due_v1(p_list text, p_short text, p_now timestamptz)
returns boolean language plpgsql stable as $$
begin
    return exists (
        select from afl.claim_level l
        cross join lateral (
            select o.tend_at from afl.claim_floor o
            where o.list = l.list and o.short_name = l.short_name
              and o.priority = l.priority
            order by o.number desc limit 1
        ) as f
        where l.list = p_list and l.short_name = p_short and f.tend_at <= p_now);
end $$;

-- Takes ready tasks in the order of claims, if the worker is alive; the rows are in no order. With
-- p_again, what the token took before is the whole answer.
create function afl.take_v1(
    p_worker text, p_names text[], p_lists text[], p_n int, p_token text, p_again boolean
) returns table (t afl.task, replies json)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
    v_list text := p_lists[1];
    v_short text := split_part(p_names[1], '.', -1);
    v_missing int := p_n;
    v_top constant bigint := 2147483648;
    v_priority int;
    v_first timestamptz;
    v_first_id uuid;
    v_due boolean;
    v_tend boolean := false;
    v_began timestamptz;
    v_ids uuid[];
begin
    if p_again and p_token is not null then
        return query select k.t, k.replies from afl.held_by_token_v1(p_worker, p_token) as k;
        if found then
            return;
        end if;
    end if;
    if p_n <= 0 then
        return;
    elsif cardinality(p_names) <> 1 or cardinality(p_lists) <> 1 then
        if afl.is_live_v1(p_worker, v_now) then
            return query select k.t, k.replies from afl.take_among_v1(
                p_worker, p_names, array(select distinct x from unnest(p_lists) as x),
                array(select distinct split_part(x, '.', -1) from unnest(p_names) as x), p_n,
                p_token, v_now) as k;
        end if;
        return;
    end if;
    -- straight along the index, one priority after the other, so that a backlog that others serve
    -- or that is not due costs nothing; one alone takes less to begin with
    v_began := clock_timestamp();
    if p_n = 1 then
        loop
            update afl.task k set
                state = 'running', fence = nextval('afl.fence'), worker = p_worker,
                last_fence = currval('afl.fence'), claim_token = p_token, reason_code = null,
                reason_since = null, reason_until = null, reason_by = null
            where k.id = (
                select x.id from afl.claim_level l
                left join lateral (
                    select o.run_at, o.id, o.noted_at from afl.claim_floor o
                    where o.list = l.list and o.short_name = l.short_name
                      and o.priority = l.priority
                    order by o.number desc limit 1
                ) as f on f.noted_at <= v_now
                    and coalesce(current_setting('afl.test_clock', true), '') = ''
                cross join lateral (
                    select o.id from afl.task o
                    where o.state = 'ready' and o.list = l.list and o.short_name = l.short_name
                      and o.priority = l.priority and o.run_at <= v_now
                      and (o.run_at, o.id) >= (
                          coalesce(f.run_at, '-infinity'),
                          coalesce(f.id, '00000000-0000-0000-0000-000000000000'))
                      and (o.short_name = p_names[1] or o.name = p_names[1])
                    order by o.run_at, o.id limit 1
                    for update of o skip locked
                ) as x
                where l.list = v_list and l.short_name = v_short
                  and (select true from afl.worker w where w.id = p_worker
                       and w.expires_at > v_now and w.state in ('startup', 'running'))
                order by l.priority desc limit 1)
            returning k.* into t;
            if found then
                -- who has never committed has called nobody
                replies := case when t.committed_fence is not null then afl.untaken_v1(t.id) end;
                return next;
                v_missing := 0;
            end if;
            v_tend := clock_timestamp() - v_began > interval '0.5 ms';
            -- who gets what it wants asks only now and then
            if v_missing > 0 or t.fence % 16 = 0 then
                v_tend := v_tend or afl.floor_is_due_v1(v_list, v_short, v_now);
            end if;
            exit when not v_tend or not afl.tend_levels_v1(p_lists, array[v_short], v_now)
                or v_missing = 0;
        end loop;
        return;
    end if;
    select l.priority, l.run_at, l.id, l.due into v_priority, v_first, v_first_id, v_due
    from afl.worker w
    left join lateral afl.level_below_v1(v_list, v_short, v_top, v_now) as l on true
    where w.id = p_worker and w.expires_at > v_now and w.state in ('startup', 'running');
    if not found then
        return;
    end if;
    loop
        v_tend := v_tend or v_due is true
            or clock_timestamp() - v_began > interval '0.2 ms';
        if v_first is not null then
            v_ids := array(
                select k.id from afl.task k
                where k.state = 'ready' and k.list = v_list and k.short_name = v_short
                  and k.priority = v_priority and (k.run_at, k.id) >= (v_first, v_first_id)
                  and k.run_at <= v_now
                  and (k.short_name = p_names[1] or k.name = p_names[1])
                order by k.run_at, k.id limit v_missing
                for update of k skip locked);
            return query select r.t, r.replies from afl.run_v1(v_ids, p_worker, p_token) as r;
            v_missing := v_missing - cardinality(v_ids);
        end if;
        if v_priority is null or v_missing <= 0 then
            -- all over again, if something has come in below a floor
            exit when not v_tend or not afl.tend_levels_v1(p_lists, array[v_short], v_now)
                or v_missing <= 0;
            v_tend := false;
        end if;
        v_began := clock_timestamp();
        select l.priority, l.run_at, l.id, l.due into v_priority, v_first, v_first_id, v_due
        from afl.level_below_v1(v_list, v_short, coalesce(v_priority, v_top), v_now) as l;
    end loop;
end $$;

-- A task that was claimed just now, column by column as a client reads it, so that nothing between
-- the row and the client takes it apart and puts it together again. What is the same in all of them,
-- or is known to who claims, is not there.
create type afl.claimed as (
    at timestamptz, ended_deadlines json, replies json,
    id text, tenant text, run text, kind text, name text, list text, lane text, hold boolean,
    parent_call text, depth integer, priority integer, run_at timestamptz, wake text,
    fence bigint, committed_fence bigint, commits integer, max_failures integer,
    retry_delay interval, retry_backoff double precision, retry_max_delay interval,
    retry_jitter boolean, crashes integer, max_crashes integer, failures integer,
    deadline timestamptz, stop_requested boolean, input text, error text, idem text, trace text,
    seq integer, redrives text, created_at timestamptz, caller text
);

-- The same of a task, and the answers that it has not taken.
create function afl.claimed_v1(t afl.task, replies json) returns setof afl.claimed
language sql stable as $$
    select null::timestamptz, null::json, replies,
        t.id::text, t.tenant, t.run, t.kind, t.name, t.list, t.lane, t.hold,
        t.parent_call::text, t.depth, t.priority, t.run_at, t.wake, t.fence,
        t.committed_fence, t.commits, t.max_failures, t.retry_delay, t.retry_backoff,
        t.retry_max_delay, t.retry_jitter, t.crashes, t.max_crashes, t.failures,
        t.deadline, t.stop_requested, t.input::text, t.error::text, t.idem, t.trace,
        t.seq, t.redrives::text, t.created_at, t.caller::text
$$;

-- Closes tasks that nobody waits for; answers with their deadlines, if one of them has one.
--
-- What is closed here has no caller and no lane, and this is its first commit, so it has called
-- nobody. The fences are in the order of the tasks' ids. AF000: one is not like that (any more), or
-- not held; nothing was done.
create function afl.end_v1(
    p_fences bigint[], p_outcomes text[], p_results json[], p_errors json[], p_events json[],
    p_now timestamptz
) returns json language plpgsql as $$
declare
    v_count int;
    v_deadlines json;
begin
    with closed as (
        update afl.task k set
            state = 'closed', outcome = x.outcome, result = x.result, error = x.error,
            closed_at = p_now, fence = null, worker = null, claim_token = null, crashes = 0,
            committed_fence = x.fence, commits = 1
        from (
            select x.*, o.ctid as place
            from unnest(p_fences, p_outcomes, p_results, p_errors, p_events)
                as x(fence, outcome, result, error, event)
            cross join lateral (
                select o.ctid from afl.task o where o.fence = x.fence limit 1
            ) as o
        ) as x
        where k.ctid = x.place
          and case when k.fence = x.fence then
              k.committed_fence is null and k.parent_call is null and k.lane is null
              and not k.stop_requested end
        returning k.id, k.run, k.deadline, x.event
    ), events as (
        insert into afl.outbox (topic, task, run, body, created_at)
        select 'closed', c.id, c.run, c.event, p_now from closed c
    )
    select count(*), case when count(c.deadline) > 0 then json_agg(c.deadline) end
    into v_count, v_deadlines from closed c;
    if v_count <> cardinality(p_fences) then
        raise exception using errcode = 'AF000', message = 'not a plain end';
    end if;
    return v_deadlines;
end $$;

-- Closes tasks as above, and takes ready ones. The first row is about the former, the others, in no
-- order, are claims.
create function afl.finish_v1(
    p_fences bigint[], p_outcomes text[], p_results json[], p_errors json[], p_events json[],
    p_worker text, p_names text[], p_lists text[], p_n int, p_token text
) returns setof afl.claimed
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
    v_list text := p_lists[1];
    v_short text := split_part(p_names[1], '.', -1);
    v_first record;
    v_row afl.claimed;
    v_missing int := p_n;
    v_taken int;
begin
    v_row.at := v_now;
    v_row.ended_deadlines :=
        afl.end_v1(p_fences, p_outcomes, p_results, p_errors, p_events, v_now);
    return next v_row;
    if p_n > 0 and p_token is null and cardinality(p_names) = 1 and cardinality(p_lists) = 1 then
        -- most often the first level has enough
        select l.* into v_first
        from afl.worker w
        cross join lateral afl.level_below_v1(v_list, v_short, 2147483648, v_now) as l
        where w.id = p_worker and w.expires_at > v_now and w.state in ('startup', 'running');
        if v_first.run_at is not null and not v_first.due then
            return query
                update afl.task k set
                    state = 'running', fence = x.fence, last_fence = x.fence, worker = p_worker,
                    claim_token = null, reason_code = null, reason_since = null,
                    reason_until = null, reason_by = null
                from (
                    select o.ctid as place, nextval('afl.fence') as fence from (
                        select o.ctid from afl.task o
                        where o.state = 'ready' and o.list = v_list and o.short_name = v_short
                          and o.priority = v_first.priority
                          and (o.run_at, o.id) >= (v_first.run_at, v_first.id)
                          and o.run_at <= v_now
                          and (o.short_name = p_names[1] or o.name = p_names[1])
                        order by o.run_at, o.id limit p_n
                        for update of o skip locked
                    ) as o
                ) as x
                -- what changed while it was found is not there, and is looked for again below
                where k.ctid = x.place
                returning null::timestamptz, null::json,
                    case when k.committed_fence is not null then afl.untaken_v1(k.id) end,
                    k.id::text, k.tenant, k.run, k.kind, k.name, k.list, k.lane, k.hold,
                    k.parent_call::text, k.depth, k.priority, k.run_at, k.wake, k.fence,
                    k.committed_fence, k.commits, k.max_failures, k.retry_delay, k.retry_backoff,
                    k.retry_max_delay, k.retry_jitter, k.crashes, k.max_crashes, k.failures,
                    k.deadline, k.stop_requested, k.input::text, k.error::text, k.idem, k.trace,
                    k.seq, k.redrives::text, k.created_at, k.caller::text;
            get diagnostics v_taken = row_count;
            v_missing := p_n - v_taken;
        end if;
    end if;
    if v_missing > 0 then
        return query
            select c.* from afl.take_v1(p_worker, p_names, p_lists, v_missing, p_token, true) as r
            cross join lateral afl.claimed_v1(r.t, r.replies) as c;
    end if;
end $$;

-- The same for one task, and one to take by one name from one list: all of it is one statement. The
-- first row is about what was closed, and about what was taken too, unless that had to be looked for
-- again, as above.
create function afl.finish_one_v1(
    p_fence bigint, p_outcome text, p_result json, p_error json, p_event json,
    p_worker text, p_name text, p_short text, p_list text, p_token text
) returns setof afl.claimed
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    v_now timestamptz := afl.now();
    v_deadline timestamptz;
    v_row afl.claimed;
begin
    if p_token is not null and exists (
        select from afl.task k where k.worker = p_worker and k.state = 'running'
          and k.claim_token = p_token and k.fence <> p_fence)
    then
        raise exception using errcode = 'AF000', message = 'taken before';
    end if;
    return query
        with ended as (
            update afl.task k set
                state = 'closed', outcome = p_outcome, result = p_result, error = p_error,
                closed_at = v_now, fence = null, worker = null, claim_token = null, crashes = 0,
                committed_fence = k.fence, commits = 1
            where k.fence = p_fence and k.committed_fence is null and k.parent_call is null
              and k.lane is null and not k.stop_requested
            returning k.id, k.run, k.deadline
        ), event as (
            insert into afl.outbox (topic, task, run, body, created_at)
            select 'closed', e.id, e.run, p_event, v_now from ended e
        )
        update afl.task k set
            state = 'running', fence = nextval('afl.fence'), last_fence = currval('afl.fence'),
            worker = p_worker, claim_token = p_token, reason_code = null, reason_since = null,
            reason_until = null, reason_by = null
        from ended e
        where k.id = (
            select x.id from afl.claim_level l
            left join lateral (
                select o.run_at, o.id, o.noted_at from afl.claim_floor o
                where o.list = l.list and o.short_name = l.short_name
                  and o.priority = l.priority
                order by o.number desc limit 1
            ) as f on f.noted_at <= v_now
                and coalesce(current_setting('afl.test_clock', true), '') = ''
            cross join lateral (
                select o.id from afl.task o
                where o.state = 'ready' and o.list = l.list and o.short_name = l.short_name
                  and o.priority = l.priority and o.run_at <= v_now
                  and (o.run_at, o.id) >= (
                      coalesce(f.run_at, '-infinity'),
                      coalesce(f.id, '00000000-0000-0000-0000-000000000000'))
                  and (o.short_name = p_name or o.name = p_name)
                order by o.run_at, o.id limit 1
                for update of o skip locked
            ) as x
            where l.list = p_list and l.short_name = p_short
              and (select true from afl.worker w where w.id = p_worker
                   and w.expires_at > v_now and w.state in ('startup', 'running'))
            order by l.priority desc limit 1)
        returning v_now, case when e.deadline is not null then json_build_array(e.deadline) end,
            case when k.committed_fence is not null then afl.untaken_v1(k.id) end,
            k.id::text, k.tenant, k.run, k.kind, k.name, k.list, k.lane, k.hold,
            k.parent_call::text, k.depth, k.priority, k.run_at, k.wake, k.fence,
            k.committed_fence, k.commits, k.max_failures, k.retry_delay, k.retry_backoff,
            k.retry_max_delay, k.retry_jitter, k.crashes, k.max_crashes, k.failures,
            k.deadline, k.stop_requested, k.input::text, k.error::text, k.idem, k.trace,
            k.seq, k.redrives::text, k.created_at, k.caller::text;
    if found then
        -- who gets what it wants looks after the floors only now and then, or if that took long
        if currval('afl.fence') % 16 = 0 or clock_timestamp() - v_now > interval '1 ms' then
            if clock_timestamp() - v_now > interval '1 ms'
                or afl.floor_is_due_v1(p_list, p_short, v_now)
            then
                perform afl.tend_levels_v1(array[p_list], array[p_short], v_now);
            end if;
        end if;
        return;
    end if;
    select k.deadline into v_deadline from afl.task k
    where k.committed_fence = p_fence and k.xmin = pg_current_xact_id()::xid;
    if not found then
        raise exception using errcode = 'AF000', message = 'not a plain end';
    end if;
    v_row.at := v_now;
    v_row.ended_deadlines := json_build_array(v_deadline);
    return next v_row;
    if clock_timestamp() - v_now > interval '1 ms'
        or afl.floor_is_due_v1(p_list, p_short, v_now)
    then
        return query
            select c.* from afl.take_v1(
                p_worker, array[p_name], array[p_list], 1, p_token, false) as r
            cross join lateral afl.claimed_v1(r.t, r.replies) as c;
    end if;
end $$;

-- Takes ready tasks, for a worker that has to be alive.
create function afl.claim_v1(p_worker text, p_names text[], p_lists text[], p_n int, p_token text)
returns table (t afl.task, replies json)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
begin
    return query select k.t, k.replies
                 from afl.take_v1(p_worker, p_names, p_lists, p_n, p_token, true) as k;
    -- who has taken something without a token is alive
    if (p_token is not null or not found) and not afl.is_live_v1(p_worker, afl.now()) then
        raise exception using errcode = 'AF005',
            message = format('worker %s is not registered or not alive', p_worker);
    end if;
end $$;

-- Takes one task if it is ready and due, for a worker that has to be alive.
create function afl.take_task_v1(p_worker text, p_task uuid)
returns table (t afl.task, replies json)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
begin
    if not afl.is_live_v1(p_worker, v_now) then
        raise exception using errcode = 'AF005',
            message = format('worker %s is not registered or not alive', p_worker);
    end if;
    return query
        update afl.task k set
            state = 'running', fence = nextval('afl.fence'), last_fence = currval('afl.fence'),
            worker = p_worker, claim_token = null, reason_code = null, reason_since = null,
            reason_until = null, reason_by = null
        where k.id = p_task and case when k.state = 'ready' then k.run_at <= v_now end
        returning k, case when k.committed_fence is not null then afl.untaken_v1(k.id) end;
end $$;
