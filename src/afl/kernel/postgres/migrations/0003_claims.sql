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
begin
    while v_missing > 0 loop
        v_found := array(
            select k.id
            from unnest(p_lists) as l(list) cross join unnest(p_shorts) as s(short)
            cross join lateral (
                with recursive p as (
                    (select x.priority from afl.task x
                     where x.state = 'ready' and x.list = l.list and x.short_name = s.short
                       and x.priority <= v_priority
                     order by x.priority desc limit 1)
                    union all
                    select (select x.priority from afl.task x
                            where x.state = 'ready' and x.list = l.list and x.short_name = s.short
                              and x.priority < p.priority
                            order by x.priority desc limit 1)
                    from p where p.priority is not null
                )
                select p.priority from p where p.priority is not null
            ) as p
            cross join lateral (
                select x.id, x.priority, x.run_at from afl.task x
                where x.state = 'ready' and x.list = l.list and x.short_name = s.short
                  and x.priority = p.priority and x.run_at <= p_now
                  and x.run_at >= case when p.priority < v_priority then '-infinity'::timestamptz
                                       else v_run_at end
                  and (p.priority < v_priority or (x.run_at, x.id) > (v_run_at, v_id))
                  and (x.short_name = any(p_names) or x.name = any(p_names))
                order by x.run_at, x.id limit v_want
            ) as k
            order by k.priority desc, k.run_at, k.id limit v_want);
        exit when cardinality(v_found) = 0;
        v_ids := array(
            select k.id from afl.task k
            where k.id = any(v_found) and case when k.state = 'ready' then k.run_at <= p_now end
            order by k.priority desc, k.run_at, k.id limit v_missing
            for update of k skip locked);
        return query select r.t, r.replies from afl.run_v1(v_ids, p_worker, p_token) as r;
        v_missing := v_missing - cardinality(v_ids);
        exit when cardinality(v_found) < v_want;
        select k.priority, k.run_at, k.id into v_priority, v_run_at, v_id from afl.task k
        where k.id = v_found[v_want];
        v_want := v_want * 4;
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
    v_priority int;
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
    select (select k.priority from afl.task k
            where k.state = 'ready' and k.list = v_list and k.short_name = v_short
            order by k.priority desc limit 1)
    into v_priority
    from afl.worker w
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
        if p_n = 1 then
            update afl.task k set
                state = 'running', fence = nextval('afl.fence'), worker = p_worker,
                last_fence = currval('afl.fence'), claim_token = p_token, reason_code = null,
                reason_since = null, reason_until = null, reason_by = null
            where k.id = (
                select o.id from afl.task o
                where o.state = 'ready' and o.list = v_list and o.short_name = v_short
                  and o.priority = v_priority and o.run_at <= v_now
                  and (o.short_name = p_names[1] or o.name = p_names[1])
                order by o.run_at, o.id limit 1
                for update of o skip locked)
            returning k.* into t;
            if found then
                -- who has never committed has called nobody
                replies := case when t.committed_fence is not null then afl.untaken_v1(t.id) end;
                return next;
                return;
            end if;
        else
            v_ids := array(
                select k.id from afl.task k
                where k.state = 'ready' and k.list = v_list and k.short_name = v_short
                  and k.priority = v_priority and k.run_at <= v_now
                  and (k.short_name = p_names[1] or k.name = p_names[1])
                order by k.run_at, k.id limit v_missing
                for update of k skip locked);
            return query select v_now, null::timestamptz[], r.t, r.replies
                         from afl.run_v1(v_ids, p_worker, p_token) as r;
            v_missing := v_missing - cardinality(v_ids);
            exit when v_missing <= 0;
        end if;
        v_priority := (
            select k.priority from afl.task k
            where k.state = 'ready' and k.list = v_list and k.short_name = v_short
              and k.priority < v_priority
            order by k.priority desc limit 1);
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
