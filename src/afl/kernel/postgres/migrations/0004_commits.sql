-- Commits: one step of work each. For locks, plans and refusals see 0002.

-- I8: appends cards to the boxes of tasks, which are locked.
create function afl.write_cards_v1(
    p_ids uuid[], p_repeated boolean[], p_at int[], p_hashes text[], p_kinds text[],
    p_contents json[]
) returns void language plpgsql as $$
begin
    -- in one order, so that two that write the same cards do not wait for each other
    insert into afl.card (hash, kind, content)
    select distinct on (x.hash) x.hash, x.kind, x.content
    from unnest(p_at, p_hashes, p_kinds, p_contents) as x(at, hash, kind, content)
    where not p_repeated[x.at]
    order by x.hash
    on conflict do nothing;
    insert into afl.box_card (box, seq, card)
    select k.id::text, k.seq + row_number() over (partition by x.at order by x.n) - 1, x.hash
    from unnest(p_at, p_hashes) with ordinality as x(at, hash, n)
    cross join lateral (
        select o.id, o.seq from afl.task o where o.id = p_ids[x.at] limit 1
    ) as k
    where not p_repeated[x.at];
end $$;

-- Notes that answers were taken in.
create function afl.apply_v1(p_ids uuid[], p_repeated boolean[], p_at int[], p_calls uuid[])
returns void language plpgsql as $$
declare
    r record;
begin
    for r in
        select x.at, c.key, c.status, c.caller from unnest(p_at, p_calls) as x(at, id)
        left join lateral (
            select o.key, o.status, o.caller from afl.call o where o.id = x.id limit 1
        ) as c on true
        where not p_repeated[x.at]
          and (c.caller is distinct from p_ids[x.at] or c.status = 'open')
    loop
        raise exception using errcode = 'AF004', message =
            case when r.caller is distinct from p_ids[r.at]
                 then format('`applied` names a call that task %s never made', p_ids[r.at])
                 else format('call ''%s'' has no answer yet that could be applied', r.key) end;
    end loop;
    update afl.call c set applied = true
    from unnest(p_at, p_calls) as x(at, id)
    where c.id = any(p_calls) and c.id = x.id and not p_repeated[x.at] and not c.applied;
end $$;

-- I11: refuses callees that would run too deep, elsewhere, or never.
create function afl.refuse_callees_v1(p_ids uuid[], p_calls json, p_only int[], p_lanes boolean)
returns void language plpgsql as $$
declare
    r record;
begin
    for r in
        select k.id, k.depth, k.run, s.run as other
        from json_to_recordset(p_calls) as s(n int, at int, run text)
        join afl.task k on k.id = p_ids[s.at]
        where k.id = any(p_ids) and s.n = any(p_only) and (k.depth >= 19 or s.run <> k.run)
        order by s.n
    loop
        if r.depth >= 19 then
            raise exception using errcode = 'AF003', message = format(
                'task %s is %s calls deep and calls may nest up to 19; look for a task that calls '
                'itself', r.id, r.depth);
        end if;
        raise exception using errcode = 'AF004', message = format(
            'task %s of run %s calls into run %s; a callee belongs to its caller''s run: leave '
            '`run` out, or enqueue the task without a call', r.id, r.run, r.other);
    end loop;
    if not p_lanes then
        return;
    end if;
    for r in
        with recursive up as (
            select s.tenant, s.lane, k.id, k.caller, k.tenant as held_tenant, k.lane as held,
                   k.hold, k.state
            from json_to_recordset(p_calls) as s(n int, at int, tenant text, lane text)
            join afl.task k on k.id = p_ids[s.at]
            where k.id = any(p_ids) and s.n = any(p_only) and s.lane is not null
            union all
            select up.tenant, up.lane, k.id, k.caller, k.tenant, k.lane, k.hold, k.state
            from up cross join lateral (
                select o.* from afl.task o where o.id = up.caller limit 1
            ) as k
        )
        select up.id, up.lane from up
        where up.held = up.lane and up.held_tenant = up.tenant and up.hold
          and up.state <> 'closed'
        limit 1
    loop
        raise exception using errcode = 'AF002', message = format(
            'the callee wants lane ''%s'', which its caller %s holds until the callee has '
            'answered; use another lane, or a caller with hold=False', r.lane, r.id);
    end loop;
end $$;

-- Opens calls and makes their callees; answers how many. A key that exists is the same call.
create function afl.open_calls_v1(
    p_ids uuid[], p_repeated boolean[], p_calls json, p_inputs json[], p_lanes boolean,
    p_worker text, p_names text[], p_lists text[], p_n int, p_token text, p_now timestamptz
) returns int language plpgsql as $$
declare
    v_new int[];
    v_suspect boolean;
begin
    with s as (
        select s.*, k.id as caller, k.run as caller_run, k.deadline as caller_deadline,
               k.depth >= 19 or coalesce(s.run <> k.run, false) as suspect
        from json_to_recordset(p_calls) as s(
            n int, at int, id uuid, run text, call uuid, key text, call_timeout_us bigint)
        cross join lateral (
            select o.id, o.run, o.depth, o.deadline from afl.task o
            where o.id = p_ids[s.at] limit 1
        ) as k
        where not p_repeated[s.at]
    ), made as (
        insert into afl.call (id, run, caller, key, callee, deadline)
        select s.call, s.caller_run, s.caller, s.key, s.id,
               least(p_now + s.call_timeout_us * interval '1 microsecond', s.caller_deadline)
        from s order by s.n
        on conflict (caller, key) do nothing
        returning id
    )
    select array_agg(s.n), bool_or(s.suspect) into v_new, v_suspect
    from s join made on made.id = s.call;
    if v_new is null then
        return 0;
    end if;
    if v_suspect or p_lanes then
        perform afl.refuse_callees_v1(p_ids, p_calls, v_new, p_lanes);
    end if;
    if p_lanes then
        perform afl.take_lanes_v1(array_agg(s.tenant order by s.n), array_agg(s.lane order by s.n),
                                  array_agg(s.id order by s.n))
        from json_to_recordset(p_calls) as s(n int, id uuid, tenant text, lane text)
        where s.n = any(v_new) and s.lane is not null;
    end if;
    return afl.insert_tasks_v1(p_calls, p_inputs, v_new, p_ids, p_worker, p_names, p_lists, p_n,
                               p_token, p_now);
end $$;

-- Takes new callees that can start, in the order of claims, unless their caller has ended.
create function afl.take_callees_v1(
    p_calls uuid[], p_worker text, p_names text[], p_lists text[], p_n int, p_token text,
    p_now timestamptz
) returns void language plpgsql as $$
declare
    v_callees uuid[] := array(select c.callee from afl.call c where c.id = any(p_calls));
begin
    update afl.task k set
        state = 'running', fence = x.fence, last_fence = x.fence, worker = p_worker,
        claim_token = p_token, reason_code = null, reason_since = null, reason_until = null,
        reason_by = null
    from (
        select o.id, nextval('afl.fence') as fence from (
            select k.id from afl.task k
            where k.id = any(v_callees)
              and (select p.state from afl.task p where p.id = k.caller) <> 'closed'
              and case when k.state = 'ready' then k.run_at <= p_now and k.list = any(p_lists) end
              and (k.name = any(p_names) or k.short_name = any(p_names))
            order by k.priority desc, k.run_at, k.id
            limit p_n) as o
    ) as x
    where k.id = any(v_callees) and k.id = x.id;
end $$;

-- What becomes of tasks after a step: closed, tried again, running on, ready or waiting.
create function afl.settle_v1(
    p_ids uuid[], p_repeated boolean[], p_fences bigint[], p_thens text[], p_outcomes text[],
    p_results json[], p_errors json[], p_permanents boolean[], p_cards int[], p_stopping boolean,
    p_lanes boolean, p_now timestamptz
) returns void language plpgsql as $$
declare
    c record;
    r record;
    v_waiting boolean;
begin
    if p_stopping or 'close' = any(p_thens) then
        select array_agg(x.id order by x.n) as ids,
               array_agg(case when x.step = 'close' then x.outcome else 'canceled' end order by x.n)
                   as outcomes,
               array_agg(case when x.step = 'close' then x.result end order by x.n) as results,
               array_agg(case when x.step = 'close' then x.error else k.error end order by x.n)
                   as errors,
               array_agg(x.step = 'close' and x.outcome = 'failed' and not k.stop_requested
                         and k.max_failures > 0 order by x.n) as deads,
               array_agg((x.step = 'close' and x.outcome = 'failed')::int order by x.n) as failures,
               array_agg(x.fence order by x.n) as fences,
               array_agg(x.cards order by x.n) as cards
        into c
        from unnest(p_ids, p_repeated, p_fences, p_thens, p_outcomes, p_results, p_errors,
                    p_permanents, p_cards)
            with ordinality
            as x(id, repeated, fence, step, outcome, result, error, permanent, cards, n)
        join afl.task k on k.id = x.id
        where k.id = any(p_ids) and not x.repeated and (
            (x.step = 'suspend' and k.stop_requested)
            or (x.step = 'close' and not (
                x.outcome = 'failed' and not x.permanent and not k.stop_requested
                and k.failures < k.max_failures)));
        if c.ids is not null then
            perform afl.close_v1(c.ids, c.outcomes, c.results, c.errors, c.deads, c.failures,
                                 c.fences, c.cards, p_lanes, p_now);
            if cardinality(c.ids) = cardinality(p_ids) then
                return;
            end if;
        end if;
    end if;
    -- materialized, or what they compute would be computed wherever it is used
    with x as materialized (
        select x.*, o.id as first_call, o.deadline as first_deadline,
               x.step = 'suspend' and afl.has_untaken_v1(k.id) as untaken, k.wake,
               case when x.step = 'close' then p_now + afl.retry_wait_v1(k) end as again
        from unnest(p_ids, p_repeated, p_thens, p_cards, p_errors)
            as x(id, repeated, step, cards, error)
        join afl.task k on k.id = x.id
        left join lateral (
            select y.id, y.deadline from afl.call y
            where y.caller = k.id and y.status = 'open' and x.step = 'suspend'
            order by y.deadline, y.id limit 1) as o on true
        where k.id = any(p_ids) and not x.repeated and case when k.state = 'running' then true end
    ), y as materialized (
        select x.*, case when x.step = 'continue' then 'running'
                         when x.first_call is not null and not (x.wake = 'any' and x.untaken)
                         then 'waiting' else 'ready' end as state
        from x
    ), done as (
        update afl.task k set
            state = y.state,
            fence = case when y.state = 'running' then k.fence end,
            worker = case when y.state = 'running' then k.worker end,
            claim_token = case when y.state = 'running' then k.claim_token end,
            committed_fence = k.fence,
            commits = case when k.committed_fence = k.fence then k.commits + 1 else 1 end,
            crashes = 0,
            seq = k.seq + y.cards,
            failures = k.failures + (y.step = 'close')::int,
            error = case when y.step = 'close' then y.error else k.error end,
            run_at = case when y.step = 'close' then y.again
                          when y.state = 'ready' then p_now else k.run_at end,
            reason_code = case when y.state = 'running' then k.reason_code
                               when y.step = 'close' then 'retry'
                               when y.state = 'waiting' then 'calls_open'
                               when y.untaken then 'answered' else 'claimable' end,
            reason_since = case when y.state = 'running' then k.reason_since else p_now end,
            reason_until = case when y.step = 'close' then y.again
                                when y.state = 'waiting' then y.first_deadline end,
            reason_by = case when y.state = 'waiting' then y.first_call::text end
        from y where k.id = any(p_ids) and k.id = y.id
        returning k.id, k.state = 'waiting' and k.lane is not null and not k.hold as lets_go
    )
    select bool_or(done.lets_go) into v_waiting from done;
    if v_waiting then
        for r in
            select k.tenant, k.lane from afl.task k
            cross join lateral (
                select l.active from afl.lane l
                where l.tenant = k.tenant and l.name = k.lane limit 1
            ) as l
            where k.id = any(p_ids) and k.state = 'waiting' and not k.hold and l.active = k.id
            order by k.tenant, k.lane
        loop
            perform afl.pass_lane_v1(r.tenant, r.lane, p_now);
        end loop;
    end if;
end $$;

-- I1: the tasks of fences, and whether a commit was taken before; refuses what is neither.
create function afl.find_commits_v1(
    p_fences bigint[], p_numbers int[], out ids uuid[], out repeated boolean[]
) language plpgsql as $$
declare
    r record;
begin
    for r in
        select x.fence, x.number, k.id, d.id as done,
               case when k.committed_fence = x.fence then k.commits end as expected
        from unnest(p_fences, p_numbers) with ordinality as x(fence, number, n)
        left join lateral (
            select o.id, o.committed_fence, o.commits from afl.task o
            where o.fence = x.fence limit 1
        ) as k on true
        left join lateral (
            select o.id from afl.task o
            where o.committed_fence = x.fence and x.number < o.commits limit 1
        ) as d on true
        order by x.n
    loop
        if r.done is null and r.id is null then
            raise exception using errcode = 'AF001',
                message = format('fence %s is not held; nothing was written', r.fence);
        elsif r.done is null and r.number <> coalesce(r.expected, 0) then
            raise exception using errcode = 'AF004', message = format(
                'commit %s under fence %s of task %s comes out of order; the next number is %s',
                r.number, r.fence, r.id, coalesce(r.expected, 0));
        end if;
        ids := ids || coalesce(r.done, r.id);
        repeated := repeated || (r.done is not null);
    end loop;
end $$;

-- Whether a worker still holds what a token took.
create function afl.holds_v1(p_worker text, p_token text) returns boolean
language plpgsql stable as $$
begin
    return exists (select from afl.task k where k.worker = p_worker and k.state = 'running'
                   and k.claim_token = p_token);
end $$;

-- In which round each commit is taken; p_own are the tasks that the fences hold. All at once if they
-- cannot touch each other; callees first, then their callers, if they come in this order and nobody
-- is both. Null for one by one: lanes are in play, a fence comes twice, or it is more involved.
create function afl.rounds_v1(p_fences bigint[], p_own uuid[], p_lanes boolean) returns int[]
language plpgsql as $$
declare
    v_count int := cardinality(p_fences);
    v_round int[];
    v_tangled boolean;
begin
    if v_count < 2 then
        return array_fill(1, array[v_count]);
    elsif p_lanes or v_count <> (select count(distinct f) from unnest(p_fences) as f) then
        return null;
    elsif not exists (select from afl.task k where k.id = any(p_own) and k.caller = any(p_own)) then
        return array_fill(1, array[v_count]);
    end if;
    -- what was taken before has no task here, and does nothing in either round
    select array_agg(case when c.at is null then 2 else 1 end order by f.n),
           bool_or(c.at < f.n or (c.at is not null and c.caller = any(p_own)))
    into v_round, v_tangled
    from unnest(p_fences) with ordinality as f(fence, n)
    left join lateral (
        select o.caller from afl.task o where o.fence = f.fence limit 1
    ) as k on true
    left join lateral (
        select o.caller, array_position(p_fences, o.fence) as at from afl.task o
        where o.id = k.caller limit 1
    ) as c on true;
    return case when v_tangled is not true then v_round end;
end $$;

-- One step of work each; all of them or nothing. With p_claim, the worker also takes what is ready,
-- in rows at 0, up to p_n together with the eager callees.
create function afl.commit_v1(
    p_fences bigint[], p_numbers int[], p_thens text[], p_outcomes text[], p_results json[],
    p_errors json[], p_permanents boolean[], p_cards int[],
    p_card_at int[], p_card_hashes text[], p_card_kinds text[], p_card_contents json[],
    p_applied_at int[], p_applied uuid[],
    p_calls json, p_inputs json[], p_call_at int[], p_call_ids uuid[], p_call_keys text[],
    p_call_lanes text[], p_call_tenants text[],
    p_worker text, p_names text[], p_lists text[], p_n int, p_token text, p_claim boolean
) returns table (at int, repeated boolean, eager boolean, calls json, t afl.task, replies json)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
    v_count int := cardinality(p_fences);
    v_own uuid[];
    v_lanes boolean;
    v_stopping boolean;
    v_ids uuid[];
    v_repeated boolean[];
    -- in which round each commit is taken, null for one by one, and how many rounds there are
    v_round int[];
    v_rounds int;
    -- in a round, what stands for "not now" is treated as if it had been taken before
    v_done boolean[];
    v_made int := 0;
    v_free int := 0;
    v_eager int := 0;
    v_held boolean := false;
    v_at_birth boolean;
    v_callees uuid[];
begin
    select array_agg(x.id) filter (where x.fence = any(p_fences)), bool_or(x.lane is not null),
           bool_or(x.stop_requested)
    into v_own, v_lanes, v_stopping
    from (
        select k.id, k.fence, k.lane, k.stop_requested from afl.task k
        where k.id = any(
            array(select o.id from afl.task o where o.fence = any(p_fences))
            || array(select o.caller from afl.task o
                     where o.fence = any(p_fences) and o.caller is not null))
        order by k.depth desc, k.id
        for update
    ) as x;
    v_lanes := v_lanes or p_call_lanes is not null;
    if v_lanes then
        perform afl.lock_lanes_v1(v_own, p_call_tenants, p_call_lanes);
    end if;
    if p_n > 0 and (p_claim or p_call_at is not null) and afl.is_live_v1(p_worker, v_now) then
        v_free := p_n;
        v_eager := case when p_call_at is not null then p_n else 0 end;
    end if;
    v_round := afl.rounds_v1(p_fences, v_own, v_lanes);
    v_rounds := case when v_round is null then v_count when v_count = 0 then 0
                     when 1 = all(v_round) then 1 else 2 end;
    if p_claim and p_token is not null then
        v_held := afl.holds_v1(p_worker, p_token);
    end if;
    -- who may start is known only when the steps have settled, if lanes, the end of a caller or what
    -- a token has taken before are in play, or if there are calls in more than one round
    v_at_birth := not v_lanes and v_stopping is not true and not v_held and v_round is not null
        and (v_rounds < 2 or p_call_at is null
             or not exists (select from unnest(p_call_at) as a(at)
                            where v_round[a.at] <> v_round[p_call_at[1]]));
    for i in 1 .. v_rounds loop
        if v_round is not null then
            if i = 1 then
                select f.ids, f.repeated into v_ids, v_repeated
                from afl.find_commits_v1(p_fences, p_numbers) as f;
            end if;
            v_done := v_repeated;
            if v_rounds = 2 then
                v_done := array(select v_repeated[n] or v_round[n] <> i
                                from generate_series(1, v_count) as n);
            end if;
            continue when true = all(v_done);
        else
            select v_ids || f.ids, v_repeated || f.repeated into v_ids, v_repeated
            from afl.find_commits_v1(p_fences[i:i], p_numbers[i:i]) as f;
            v_done := array_fill(true, array[v_count]);
            v_done[i] := v_repeated[i];
            continue when v_done[i];
        end if;
        if p_card_at is not null then
            perform afl.write_cards_v1(
                v_ids, v_done, p_card_at, p_card_hashes, p_card_kinds, p_card_contents);
        end if;
        if p_applied_at is not null then
            perform afl.apply_v1(v_ids, v_done, p_applied_at, p_applied);
        end if;
        if p_call_at is not null then
            v_made := v_made + afl.open_calls_v1(
                v_ids, v_done, p_calls, p_inputs, p_call_lanes is not null, p_worker, p_names,
                p_lists, case when v_at_birth then v_eager else 0 end, p_token, v_now);
        end if;
        perform afl.settle_v1(
            v_ids, v_done, p_fences, p_thens, p_outcomes, p_results, p_errors, p_permanents,
            p_cards, v_stopping, v_lanes, v_now);
    end loop;
    -- what the steps have let go of is not held any more
    v_held := v_held and afl.holds_v1(p_worker, p_token);
    if v_held then
        v_free := 0;
        v_eager := 0;
    elsif v_eager > 0 and not v_at_birth then
        perform afl.take_callees_v1(
            p_call_ids, p_worker, p_names, p_lists, v_eager, p_token, v_now);
    end if;
    -- if all calls are new, their ids are what the request says
    return query
        select x.n::int, x.repeated, false,
               case when v_made < cardinality(p_call_ids) then (
                   select coalesce(json_object_agg(c.key, c.id), '{}')
                   from unnest(p_call_at, p_call_keys) as y(at, key)
                   cross join lateral (
                       select o.key, o.id from afl.call o
                       where o.caller = x.id and o.key = y.key limit 1
                   ) as c
                   where y.at = x.n) end, k.row, null::json
        from unnest(v_ids, v_repeated) with ordinality as x(id, repeated, n)
        cross join lateral (select o as row from afl.task o where o.id = x.id limit 1) as k
        order by x.n;
    if v_eager > 0
        or (p_token is not null and p_call_at is not null and true = any(v_repeated))
    then
        -- born in this commit, or in the same one whose answer was lost
        v_callees := array(
            select c.callee from unnest(p_call_at, p_call_keys) as y(at, key)
            cross join lateral (
                select o.callee from afl.call o
                where o.caller = v_ids[y.at] and o.key = y.key limit 1
            ) as c);
        return query
            select y.at, null::boolean, true, null::json, k, afl.untaken_v1(k.id)
            from unnest(p_call_at, p_call_keys, p_call_ids) as y(at, key, id)
            cross join lateral (
                select o.id, o.callee from afl.call o
                where o.caller = v_ids[y.at] and o.key = y.key limit 1
            ) as c
            join afl.task k on k.id = c.callee
            where k.id = any(v_callees)
              and case when k.state = 'running' then k.worker = p_worker end
              and (c.id = y.id or (v_repeated[y.at] and k.claim_token = p_token))
            order by k.fence;
        get diagnostics v_made = row_count;
        v_free := v_free - v_made;
    end if;
    if v_held then
        return query select 0, null::boolean, true, null::json, k.t, k.replies
                     from afl.held_by_token_v1(p_worker, p_token) as k;
    elsif p_claim and v_free > 0 then
        return query select 0, null::boolean, true, null::json, k.t, k.replies
                     from afl.take_v1(p_worker, p_names, p_lists, v_free, p_token, false) as k;
    end if;
end $$;

-- The short way, for what the steps of most flows are: callees that end, flows that take in their
-- answers and call the next, without lanes, cards, failures or anybody who asked to stop.
--
-- AF000: something is not like that (any more), or not held, or not alive; nothing was done.

-- Opens calls, none of which exists, and makes their callees; the first p_eager are born running.
-- What callees have in common is described once, in arrays with an element for each shape.
create function afl.call_v1(
    p_callers uuid[], p_calls uuid[], p_ids uuid[], p_keys text[], p_inputs json[], p_shapes int[],
    p_tenants text[], p_kinds text[], p_names text[], p_lists text[], p_holds boolean[],
    p_priorities int[], p_delays interval[], p_timeouts interval[], p_call_timeouts interval[],
    p_wakes text[], p_max_failures int[], p_retry_delays interval[],
    p_retry_backoffs double precision[], p_retry_max_delays interval[], p_retry_jitters boolean[],
    p_max_crashes int[], p_traces text[],
    p_eager int, p_worker text, p_token text, p_now timestamptz,
    out fences bigint[], out deadlines timestamptz[]
) language plpgsql as $$
declare
    v_made int;
begin
    with s as materialized (
        select x.*, c.run, c.depth, p_now + p_delays[x.shape] as due,
               least(p_now + p_call_timeouts[x.shape], c.deadline) as call_deadline,
               least(p_now + p_timeouts[x.shape], p_now + p_call_timeouts[x.shape], c.deadline)
                   as deadline,
               case when x.n <= p_eager then nextval('afl.fence') end as fence
        from unnest(p_callers, p_calls, p_ids, p_keys, p_inputs, p_shapes) with ordinality
            as x(caller, call, id, key, input, shape, n)
        cross join lateral (
            select o.run, o.depth, o.deadline from afl.task o where o.id = x.caller limit 1
        ) as c
    ), made as (
        insert into afl.call (id, run, caller, key, callee, deadline)
        select s.call, s.run, s.caller, s.key, s.id, s.call_deadline from s
        on conflict (caller, key) do nothing
        returning 1
    ), born as (
        insert into afl.task (
            id, tenant, run, kind, name, short_name, list, hold, parent_call, caller, depth, state,
            priority, run_at, wake, fence, last_fence, worker, claim_token, max_failures, retry_delay,
            retry_backoff, retry_max_delay, retry_jitter, max_crashes, deadline, input,
            reason_code, reason_since, reason_until, trace, created_at)
        select
            s.id, p_tenants[s.shape], s.run, p_kinds[s.shape], p_names[s.shape],
            split_part(p_names[s.shape], '.', -1), p_lists[s.shape], p_holds[s.shape], s.call, s.caller, s.depth + 1,
            case when s.fence is null then 'ready' else 'running' end, p_priorities[s.shape],
            s.due, p_wakes[s.shape], s.fence, s.fence,
            case when s.fence is not null then p_worker end,
            case when s.fence is not null then p_token end,
            p_max_failures[s.shape], p_retry_delays[s.shape], p_retry_backoffs[s.shape],
            p_retry_max_delays[s.shape], p_retry_jitters[s.shape], p_max_crashes[s.shape],
            s.deadline, s.input,
            case when s.fence is not null then null
                 when s.due > p_now then 'delayed' else 'claimable' end,
            case when s.fence is null then p_now end, case when s.due > p_now then s.due end,
            p_traces[s.shape], p_now
        from s
    )
    select (select count(*) from made), array_agg(s.fence order by s.n),
           array_agg(s.deadline order by s.n)
    into v_made, fences, deadlines
    from s where s.fence is not null;
    if v_made <> cardinality(p_ids) then
        raise exception using errcode = 'AF000', message = 'a call exists';
    end if;
end $$;

-- Suspends tasks, which are locked: waiting, or ready if there is nothing to wait for. Answers with
-- their deadlines, and how they stand.
create function afl.suspend_v1(
    p_ids uuid[], p_fences bigint[], p_numbers int[], p_now timestamptz,
    out deadlines timestamptz[], out stands json
) language plpgsql as $$
declare
    v_done int;
begin
    with x as materialized (
        select x.*, k.ctid as place, o.id as first_call, o.deadline as first_deadline, u.untaken,
               case when o.id is not null and not (k.wake = 'any' and u.untaken)
                    then 'waiting' else 'ready' end as state
        from unnest(p_ids, p_fences, p_numbers) with ordinality as x(id, fence, number, n)
        cross join lateral (
            select o.ctid, o.wake from afl.task o where o.id = x.id limit 1
        ) as k
        cross join lateral (select afl.has_untaken_v1(x.id) as untaken offset 0) as u
        left join lateral (
            select y.id, y.deadline from afl.call y
            where y.caller = x.id and y.status = 'open'
            order by y.deadline, y.id limit 1
        ) as o on true
    ), done as (
        update afl.task k set
            state = x.state, fence = null, worker = null, claim_token = null,
            committed_fence = x.fence, commits = x.number + 1, crashes = 0,
            run_at = case when x.state = 'ready' then p_now else k.run_at end,
            reason_code = case when x.state = 'waiting' then 'calls_open'
                               when x.untaken then 'answered' else 'claimable' end,
            reason_since = p_now,
            reason_until = case when x.state = 'waiting' then x.first_deadline end,
            reason_by = case when x.state = 'waiting' then x.first_call::text end
        from x
        where k.ctid = x.place and case when k.fence = x.fence then
            not k.stop_requested
            and x.number = case when k.committed_fence = k.fence then k.commits else 0 end end
        returning k.deadline, x.n, k.state, k.reason_code, k.reason_until, k.reason_by
    )
    select count(*), array_agg(d.deadline order by d.n),
           json_agg(json_build_array(d.state, d.reason_code, d.reason_until, d.reason_by)
                    order by d.n)
    into v_done, deadlines, stands from done d;
    if v_done <> cardinality(p_ids) then
        raise exception using errcode = 'AF000', message = 'not a plain step';
    end if;
end $$;

-- One step of many flows: p_tasks end, or go on if they have no outcome; p_suspends open calls or do
-- not, and are suspended. The answers to calls are marked as taken at once if the caller takes them
-- in with the same request; p_applied are those that had come before. p_locks has all of these tasks
-- and the callers of those that end, p_wake the callers that are not among these tasks, p_parents
-- those that end and may leave callees behind. The first row is about all that, the others are claims.
create function afl.step_v1(
    p_locks uuid[], p_wake uuid[], p_parents uuid[],
    p_tasks uuid[], p_fences bigint[], p_numbers int[], p_outcomes text[], p_results json[],
    p_errors json[], p_events json[], p_answers uuid[], p_taken boolean[],
    p_suspends uuid[], p_suspend_fences bigint[], p_suspend_numbers int[],
    p_applied_by uuid[], p_applied uuid[],
    p_callers uuid[], p_calls uuid[], p_callees uuid[], p_keys text[], p_inputs json[],
    p_shapes int[], p_tenants text[], p_kinds text[], p_call_names text[], p_call_lists text[],
    p_holds boolean[], p_priorities int[], p_delays interval[], p_timeouts interval[],
    p_call_timeouts interval[], p_wakes text[], p_max_failures int[], p_retry_delays interval[],
    p_retry_backoffs double precision[], p_retry_max_delays interval[], p_retry_jitters boolean[],
    p_max_crashes int[], p_traces text[], p_eager int,
    p_worker text, p_names text[], p_lists text[], p_n int, p_token text, p_claim boolean
) returns table (
    at timestamptz, task_deadlines timestamptz[], suspend_deadlines timestamptz[], stands json,
    fences bigint[], deadlines timestamptz[], t afl.task, replies json)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
    v_done int;
    v_answered int;
    v_asked int;
    v_plain boolean;
begin
    select bool_and(x.lane is null) into v_plain from (
        select k.lane from afl.task k where k.id = any(p_locks)
        order by k.depth desc, k.id
        for update
    ) as x;
    if v_plain and p_n > 0 then
        v_plain := exists (
            select from afl.worker w where w.id = p_worker and w.expires_at > v_now
              and w.state in ('startup', 'running')
        ) and (not p_claim or p_token is null or not exists (
            select from afl.task k where k.worker = p_worker and k.state = 'running'
              and k.claim_token = p_token));
    end if;
    if v_plain and p_applied is not null then
        update afl.call c set applied = true
        from (
            select x.by, o.ctid as place from unnest(p_applied_by, p_applied) as x(by, id)
            cross join lateral (select o.ctid from afl.call o where o.id = x.id limit 1) as o
        ) as x
        where c.ctid = x.place
          and case when c.caller = x.by then c.status <> 'open' and not c.applied end;
        get diagnostics v_done = row_count;
        v_plain := v_done = cardinality(p_applied);
    end if;
    if v_plain and p_tasks is not null then
        with x as materialized (
            select x.*, o.ctid as place
            from unnest(p_tasks, p_fences, p_numbers, p_outcomes, p_results, p_errors, p_events,
                        p_answers, p_taken) with ordinality
                as x(id, fence, number, outcome, result, error, event, call, taken, n)
            cross join lateral (select o.ctid from afl.task o where o.id = x.id limit 1) as o
        ), done as (
            update afl.task k set
                state = case when x.outcome is null then k.state else 'closed' end,
                fence = case when x.outcome is null then k.fence end,
                worker = case when x.outcome is null then k.worker end,
                claim_token = case when x.outcome is null then k.claim_token end,
                closed_at = case when x.outcome is not null then v_now end,
                outcome = x.outcome, result = x.result,
                error = case when x.outcome is null then k.error else x.error end,
                committed_fence = x.fence, commits = x.number + 1, crashes = 0
            from x
            where k.ctid = x.place and case when k.fence = x.fence then
                not k.stop_requested
                and x.number = case when k.committed_fence = k.fence then k.commits else 0 end end
            returning k.id, k.run, k.deadline, x.event, x.n
        ), events as (
            insert into afl.outbox (topic, task, run, body, created_at)
            select 'closed', d.id, d.run, d.event, v_now from done d
            where d.event is not null order by d.n
        ), answered as (
            update afl.call c set
                status = afl.status_of(y.outcome), replied_at = v_now, applied = y.taken,
                reply = case when y.outcome in ('success', 'partial') then y.result else y.error end
            from (
                select x.outcome, x.result, x.error, x.taken, o.ctid as place from x
                cross join lateral (select o.ctid from afl.call o where o.id = x.call limit 1) as o
            ) as y
            where c.ctid = y.place and case when c.status = 'open' then true end
            returning 1
        )
        select count(*), (select count(*) from answered), (select count(x.call) from x),
               array_agg(d.deadline order by d.n)
        into v_done, v_answered, v_asked, task_deadlines from done d;
        v_plain := v_done = cardinality(p_tasks) and v_answered = v_asked;
    end if;
    if v_plain is not true then
        raise exception using errcode = 'AF000', message = 'not a plain step';
    end if;
    if p_callers is not null then
        select c.fences, c.deadlines into fences, deadlines
        from afl.call_v1(
            p_callers, p_calls, p_callees, p_keys, p_inputs, p_shapes, p_tenants, p_kinds,
            p_call_names, p_call_lists, p_holds, p_priorities, p_delays, p_timeouts,
            p_call_timeouts, p_wakes, p_max_failures, p_retry_delays, p_retry_backoffs,
            p_retry_max_delays, p_retry_jitters, p_max_crashes, p_traces, p_eager, p_worker,
            p_token, v_now) as c;
    end if;
    if p_suspends is not null then
        select s.deadlines, s.stands into suspend_deadlines, stands
        from afl.suspend_v1(p_suspends, p_suspend_fences, p_suspend_numbers, v_now) as s;
    end if;
    if p_parents is not null then
        insert into afl.orphan (task)
        select k.id from afl.task k
        where k.caller = any(p_parents) and k.parent_call is not null and k.state <> 'closed'
        on conflict do nothing;
    end if;
    if p_wake is not null then
        update afl.task k set
            state = 'ready', run_at = v_now, reason_code = 'answered', reason_since = v_now,
            reason_until = null, reason_by = null
        where k.id = any(p_wake) and case when k.state = 'waiting' then
            k.wake = 'any' or not afl.has_open_v1(k.id) end;
    end if;
    at := v_now;
    return next;
    if p_claim and p_n > p_eager then
        return query select v_now, null::timestamptz[], null::timestamptz[], null::json,
                            null::bigint[], null::timestamptz[], k.t, k.replies
                     from afl.take_v1(p_worker, p_names, p_lists, p_n - p_eager, p_token, false)
                         as k;
    end if;
end $$;
