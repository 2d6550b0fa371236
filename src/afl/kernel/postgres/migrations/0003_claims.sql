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
            state = 'running', fence = v_fences[array_position(p_ids, k.id)],
            last_fence = v_fences[array_position(p_ids, k.id)], worker = p_worker,
            claim_token = p_token, reason_code = null, reason_since = null, reason_until = null,
            reason_by = null
        where k.id = any(p_ids)
        -- who has never committed has called nobody
        returning k, case when k.committed_fence is not null then afl.untaken_v1(k.id) end;
end $$;

-- Keeps the floor of a level. With p_move it goes to the first task that is ready, by whatever name
-- and in whoever's hands, but not as far as the present: what is being written may carry a time
-- that is half a second old. What took longer to write comes in below the floor; so one claim at a
-- time looks there, and answers with the first that it finds, to which the floor goes back.
--
-- A look walks through all that was ever ready and could not be cleaned up, which takes no time, or
-- long. After a long one there is a rest, four seconds more while claims get all that they want.
create function afl.tend_level_v1(
    p_list text, p_short text, p_priority int, p_floor timestamptz, p_floor_id uuid,
    p_noted timestamptz, p_look timestamptz, p_move boolean, p_missing boolean, p_now timestamptz,
    out below timestamptz, out below_id uuid
) language plpgsql as $$
declare
    v_nil constant uuid := '00000000-0000-0000-0000-000000000000';
    v_long constant interval := '1 ms';
    v_top timestamptz := p_now - interval '0.5 s';
    v_floor timestamptz := p_floor;
    v_floor_id uuid := p_floor_id;
    v_look timestamptz := p_look;
    v_began timestamptz := clock_timestamp();
    v_took interval;
begin
    -- nobody waits for another, and nobody relies on one whose transaction does not end
    if not pg_try_advisory_xact_lock(
            hashtextextended(concat_ws(' ', 'afl level', p_priority, p_list, p_short), 0))
        and p_noted > p_now - interval '3 s'
    then
        return;
    end if;
    if p_floor > '-infinity'
        and p_look <= (case when p_missing then p_now else p_now - interval '4 s' end)
    then
        select k.run_at, k.id into below, below_id from afl.task k
        where k.state = 'ready' and k.list = p_list and k.short_name = p_short
          and k.priority = p_priority and (k.run_at, k.id) < (p_floor, p_floor_id)
        order by k.run_at, k.id limit 1;
        v_took := clock_timestamp() - v_began;
        if v_took > v_long then
            v_look := p_now + greatest(interval '1 s', v_took * 20);
        end if;
    end if;
    if below is not null then
        v_floor := below;
        v_floor_id := below_id;
    elsif p_move then
        select k.run_at, k.id into v_floor, v_floor_id from afl.task k
        where k.state = 'ready' and k.list = p_list and k.short_name = p_short
          and k.priority = p_priority and (k.run_at, k.id) >= (p_floor, p_floor_id)
          and k.run_at < v_top
        order by k.run_at, k.id limit 1;
        if not found then
            v_floor := greatest(p_floor, v_top);
            v_floor_id := case when p_floor < v_top then v_nil else p_floor_id end;
        end if;
    elsif v_look = p_look then
        return;
    end if;
    -- a clock that stands still, or that a test sets back, would make a rest endless
    if coalesce(current_setting('afl.test_clock', true), '') = '' then
        insert into afl.claim_floor (list, short_name, priority, run_at, id, noted_at, look_at)
        values (p_list, p_short, p_priority, v_floor, v_floor_id, p_now, v_look);
    end if;
end $$;

-- The level with the highest priority below another, for one list and short name, and its floor. A
-- note that is newer than the present was made by a clock that has been set back since.
create function afl.level_below_v1(
    p_list text, p_short text, p_priority bigint, p_now timestamptz
) returns table (
    priority int, run_at timestamptz, id uuid, noted_at timestamptz, look_at timestamptz
) language sql stable as $$
    select l.priority, coalesce(f.run_at, '-infinity'),
           coalesce(f.id, '00000000-0000-0000-0000-000000000000'),
           coalesce(f.noted_at, '-infinity'), coalesce(f.look_at, '-infinity')
    from afl.claim_level l
    left join lateral (
        select o.run_at, o.id, o.noted_at, o.look_at from afl.claim_floor o
        where o.list = l.list and o.short_name = l.short_name and o.priority = l.priority
        order by o.number desc limit 1
    ) as f on f.noted_at <= p_now
    where l.list = p_list and l.short_name = p_short and l.priority < p_priority
    order by l.priority desc limit 1
$$;

-- Takes ready tasks of several lists or short names, one priority after the other: the first of all
-- levels that have it are found in portions that grow, each after the one before, until enough of
-- them are not in the hands of others.
create function afl.take_among_v1(
    p_worker text, p_names text[], p_lists text[], p_shorts text[], p_n int, p_token text,
    p_now timestamptz
) returns table (t afl.task, replies json) language plpgsql as $$
declare
    v_nil constant uuid := '00000000-0000-0000-0000-000000000000';
    r record;
    v_missing int := p_n;
    v_want int;
    v_found uuid[];
    v_ids uuid[];
    v_lists text[];
    v_shorts text[];
    v_floors timestamptz[];
    v_floor_ids uuid[];
    v_starts timestamptz[];
    v_start_ids uuid[];
    v_run_at timestamptz;
    v_id uuid;
    v_below boolean;
    v_began timestamptz;
begin
    for r in
        select l.priority, array_agg(l.list) as lists, array_agg(l.short_name) as shorts,
               array_agg(coalesce(f.run_at, '-infinity')) as floors,
               array_agg(coalesce(f.id, v_nil)) as floor_ids,
               array_agg(coalesce(f.noted_at, '-infinity')) as noted,
               array_agg(coalesce(f.look_at, '-infinity')) as looks
        from afl.claim_level l
        left join lateral (
            select o.run_at, o.id, o.noted_at, o.look_at from afl.claim_floor o
            where o.list = l.list and o.short_name = l.short_name and o.priority = l.priority
            order by o.number desc limit 1
        ) as f on f.noted_at <= p_now
        where l.list = any(p_lists) and l.short_name = any(p_shorts)
        group by l.priority order by l.priority desc
    loop
        v_floors := r.floors;
        v_floor_ids := r.floor_ids;
        v_below := false;
        loop
            v_starts := v_floors;
            v_start_ids := v_floor_ids;
            v_id := v_nil;
            v_want := v_missing + 16;
            v_lists := '{}';
            v_shorts := '{}';
            v_began := clock_timestamp();
            while v_missing > 0 loop
                v_found := array(
                    select k.id
                    from unnest(r.lists, r.shorts, v_starts, v_start_ids)
                        as l(list, short, run_at, id)
                    cross join lateral (
                        select x.id, x.run_at from afl.task x
                        where x.state = 'ready' and x.list = l.list and x.short_name = l.short
                          and x.priority = r.priority and x.run_at <= p_now
                          and (x.run_at, x.id) >= (l.run_at, l.id)
                          and x.id <> v_id
                          and (x.short_name = any(p_names) or x.name = any(p_names))
                        order by x.run_at, x.id limit v_want
                    ) as k
                    order by k.run_at, k.id limit v_want);
                exit when cardinality(v_found) = 0;
                select coalesce(array_agg(o.id), '{}'), v_lists || array_agg(o.list),
                       v_shorts || array_agg(o.short_name)
                into v_ids, v_lists, v_shorts
                from (
                    select k.id, k.list, k.short_name from afl.task k
                    where k.id = any(v_found)
                      and case when k.state = 'ready' then k.run_at <= p_now end
                    order by k.run_at, k.id limit v_missing
                    for update of k skip locked
                ) as o;
                return query select o.t, o.replies from afl.run_v1(v_ids, p_worker, p_token) as o;
                v_missing := v_missing - cardinality(v_ids);
                exit when cardinality(v_found) < v_want;
                select k.run_at, k.id into v_run_at, v_id from afl.task k
                where k.id = v_found[v_want];
                select array_agg(case when l.later then l.run_at else v_run_at end),
                       array_agg(case when l.later then l.id else v_id end)
                into v_starts, v_start_ids
                from (
                    select l.*, (l.run_at, l.id) > (v_run_at, v_id) as later
                    from unnest(v_floors, v_floor_ids) with ordinality as l(run_at, id, n)
                    order by l.n
                ) as l;
                v_want := v_want * 4;
            end loop;
            exit when v_below;
            select array_agg(coalesce(b.below, x.run_at) order by x.n),
                   array_agg(coalesce(b.below_id, x.id) order by x.n),
                   count(b.below) > 0
            into v_floors, v_floor_ids, v_below
            from (
                select l.*, l.noted <= p_now - interval '0.5 s'
                           and (clock_timestamp() - v_began > interval '1 ms'
                                or (l.list, l.short) in (select * from unnest(v_lists, v_shorts)))
                           as move
                from unnest(r.lists, r.shorts, v_floors, v_floor_ids, r.noted, r.looks)
                    with ordinality as l(list, short, run_at, id, noted, look, n)
            ) as x
            left join lateral afl.tend_level_v1(
                x.list, x.short, r.priority, x.run_at, x.id, x.noted, x.look, x.move,
                v_missing > 0, p_now
            ) as b on x.move or (v_missing > 0 and x.run_at > '-infinity' and x.look <= p_now);
            exit when v_missing <= 0 or not v_below;
        end loop;
        exit when v_missing <= 0;
    end loop;
end $$;

-- Closes tasks that nobody waits for, and takes ready tasks in the order of claims, if the worker is
-- alive. The first row is about the former, if there are any; the others, in no order, are claims.
--
-- What is closed here has no caller and no lane, and this is its first commit, so it has called
-- nobody. The fences are in the order of the tasks' ids. AF000: one is not like that (any more), or
-- not held; nothing was done. With p_again, what the token took before is the whole answer.
create function afl.finish_v1(
    p_fences bigint[], p_outcomes text[], p_results json[], p_errors json[], p_events json[],
    p_worker text, p_names text[], p_lists text[], p_n int, p_token text, p_again boolean
) returns table (closed_at timestamptz, deadlines timestamptz[], t afl.task, replies json)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
    v_list text := p_lists[1];
    v_short text := split_part(p_names[1], '.', -1);
    v_missing int := p_n;
    v_count int;
    v_priority bigint := 2147483648;
    v_floor timestamptz;
    v_floor_id uuid;
    v_noted timestamptz;
    v_look timestamptz;
    v_began timestamptz;
    v_move boolean;
    v_ids uuid[];
    v_id uuid;
    v_run text;
    v_deadline timestamptz;
begin
    if cardinality(p_fences) = 1 then
        -- the same as below, for one, which takes less to begin with
        update afl.task k set
            state = 'closed', outcome = p_outcomes[1], result = p_results[1], error = p_errors[1],
            closed_at = v_now, fence = null, worker = null, claim_token = null, crashes = 0,
            committed_fence = k.fence, commits = 1
        where k.fence = p_fences[1] and k.committed_fence is null and k.parent_call is null
          and k.lane is null and not k.stop_requested
        returning k.id, k.run, k.deadline into v_id, v_run, v_deadline;
        if not found then
            raise exception using errcode = 'AF000', message = 'not a plain end';
        end if;
        insert into afl.outbox (topic, task, run, body, created_at)
        values ('closed', v_id, v_run, p_events[1], v_now);
        closed_at := v_now;
        deadlines := array[v_deadline];
        return next;
    elsif p_fences is not null then
        with closed as (
            update afl.task k set
                state = 'closed', outcome = x.outcome, result = x.result, error = x.error,
                closed_at = v_now, fence = null, worker = null, claim_token = null, crashes = 0,
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
            select 'closed', c.id, c.run, c.event, v_now from closed c
        )
        select count(*), case when count(c.deadline) > 0 then array_agg(c.deadline) end
        into v_count, deadlines from closed c;
        if v_count <> cardinality(p_fences) then
            raise exception using errcode = 'AF000', message = 'not a plain end';
        end if;
        closed_at := v_now;
        return next;
    end if;
    if p_again and p_token is not null then
        return query select v_now, null::timestamptz[], k.t, k.replies
                     from afl.held_by_token_v1(p_worker, p_token) as k;
        if found then
            return;
        end if;
    end if;
    select l.priority, l.run_at, l.id, l.noted_at, l.look_at
    into v_priority, v_floor, v_floor_id, v_noted, v_look
    from afl.worker w
    left join lateral afl.level_below_v1(v_list, v_short, v_priority, v_now) as l on true
    where w.id = p_worker and w.expires_at > v_now and w.state in ('startup', 'running');
    if not found or p_n <= 0 then
        return;
    elsif cardinality(p_names) <> 1 or cardinality(p_lists) <> 1 then
        return query select v_now, null::timestamptz[], k.t, k.replies from afl.take_among_v1(
            p_worker, p_names, array(select distinct x from unnest(p_lists) as x),
            array(select distinct split_part(x, '.', -1) from unnest(p_names) as x), p_n, p_token,
            v_now) as k;
        return;
    end if;
    -- straight along the index, one priority after the other, so that a backlog that others serve
    -- or that is not due costs nothing; one alone takes less to begin with
    while v_priority is not null loop
        v_began := clock_timestamp();
        if p_n = 1 then
            update afl.task k set
                state = 'running', fence = nextval('afl.fence'), worker = p_worker,
                last_fence = currval('afl.fence'), claim_token = p_token, reason_code = null,
                reason_since = null, reason_until = null, reason_by = null
            where k.id = (
                select o.id from afl.task o
                where o.state = 'ready' and o.list = v_list and o.short_name = v_short
                  and o.priority = v_priority and (o.run_at, o.id) >= (v_floor, v_floor_id)
                  and o.run_at <= v_now
                  and (o.short_name = p_names[1] or o.name = p_names[1])
                order by o.run_at, o.id limit 1
                for update of o skip locked)
            returning k.* into t;
            v_count := 0;
            if found then
                -- who has never committed has called nobody
                replies := case when t.committed_fence is not null then afl.untaken_v1(t.id) end;
                return next;
                v_count := 1;
            end if;
        else
            v_ids := array(
                select k.id from afl.task k
                where k.state = 'ready' and k.list = v_list and k.short_name = v_short
                  and k.priority = v_priority and (k.run_at, k.id) >= (v_floor, v_floor_id)
                  and k.run_at <= v_now
                  and (k.short_name = p_names[1] or k.name = p_names[1])
                order by k.run_at, k.id limit v_missing
                for update of k skip locked);
            return query select v_now, null::timestamptz[], r.t, r.replies
                         from afl.run_v1(v_ids, p_worker, p_token) as r;
            v_count := cardinality(v_ids);
        end if;
        v_missing := v_missing - v_count;
        v_move := v_noted <= v_now - interval '0.5 s'
            and (v_count > 0 or clock_timestamp() - v_began > interval '1 ms');
        if v_move or (v_missing > 0 and v_floor > '-infinity' and v_look <= v_now) then
            select b.below, b.below_id into v_floor, v_floor_id from afl.tend_level_v1(
                v_list, v_short, v_priority::int, v_floor, v_floor_id, v_noted, v_look, v_move,
                v_missing > 0, v_now) as b;
            -- from there on, once more
            v_noted := 'infinity';
            v_look := 'infinity';
            continue when v_missing > 0 and v_floor is not null;
        end if;
        exit when v_missing <= 0;
        select l.priority, l.run_at, l.id, l.noted_at, l.look_at
        into v_priority, v_floor, v_floor_id, v_noted, v_look
        from afl.level_below_v1(v_list, v_short, v_priority, v_now) as l;
    end loop;
end $$;

-- Takes ready tasks, for a worker that has to be alive.
create function afl.claim_v1(p_worker text, p_names text[], p_lists text[], p_n int, p_token text)
returns table (t afl.task, replies json)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
begin
    return query select k.t, k.replies from afl.finish_v1(
        null, null, null, null, null, p_worker, p_names, p_lists, p_n, p_token, true) as k;
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
