-- The transactions of the kernel, each one call and so one round trip.
--
-- Row locks are taken in one order, which no function may leave: tasks and their callers, the
-- deeper first (a caller is never deeper than its callee); lanes by name; then what nobody can
-- hold while it waits for the former: new rows, and the next task of a lane without waiting. Calls
-- are guarded by their caller's lock. Functions end in a version: a change of meaning gets a new
-- one, so that old and new processes can run side by side.
--
-- Plans are made once per connection, at a time when the tables may be nearly empty, and must stay
-- good when they are not. So the functions that a transaction calls first fix the settings of the
-- planner, and every statement names the rows it wants: by `= any` of known ids, or one at a time
-- by a lateral `limit 1`. A condition inside `case when` is hidden from the planner, which would else
-- take a partial index that fits it and read all of that. A test looks at the plans.
--
-- Refusals: AF000 not on the short way, AF001 fenced, AF002 lane cycle, AF003 too deep, AF004 bad
-- request, AF005 not found. 40001 asks for the same again: somebody else was faster.

-- How long a task waits after the failure that comes on top of those it has.
create function afl.retry_wait_v1(t afl.task) returns interval language plpgsql immutable as $$
declare
    attempt int := t.failures + 1;
    seconds double precision := least(
        extract(epoch from t.retry_delay)::double precision
            * power(t.retry_backoff, least(attempt - 1, 64)),
        extract(epoch from t.retry_max_delay)::double precision);
    digest text;
begin
    if t.retry_jitter then
        -- from the id and not from chance, so that the same question has the same answer
        digest := encode(sha256(convert_to(t.id::text || ':' || attempt, 'UTF8')), 'hex');
        seconds := seconds * (1 - (
            ('x' || substr(digest, 1, 8))::bit(32)::bigint::double precision * 4294967296
            + ('x' || substr(digest, 9, 8))::bit(32)::bigint::double precision
        ) / 36893488147419103232::double precision);
    end if;
    return make_interval(secs => seconds);
end $$;

-- Locks tasks and their callers; tells whether one of them has a lane.
create function afl.lock_tasks_v1(p_ids uuid[]) returns boolean language plpgsql as $$
declare
    laned boolean;
begin
    select bool_or(x.lane is not null) into laned from (
        select t.lane from afl.task t
        where t.id = any(p_ids || array(
            select o.caller from afl.task o where o.id = any(p_ids) and o.caller is not null))
        order by t.depth desc, t.id
        for update
    ) x;
    return laned;
end $$;

-- Locks the lanes of locked tasks and their callers, and others, by name.
create function afl.lock_lanes_v1(p_ids uuid[], p_tenants text[], p_lanes text[])
returns void language plpgsql as $$
declare
    r record;
begin
    for r in
        select t.tenant, t.lane from afl.task t
        where t.lane is not null and t.id = any(p_ids || array(
            select o.caller from afl.task o where o.id = any(p_ids) and o.caller is not null))
        union
        select x.tenant, x.lane from unnest(p_tenants, p_lanes) as x(tenant, lane)
        where x.lane is not null
        order by 1, 2
    loop
        perform 1 from afl.lane l where l.tenant = r.tenant and l.name = r.lane for update;
    end loop;
end $$;

-- Whether a task has calls without an answer.
create function afl.has_open_v1(p_task uuid) returns boolean language plpgsql stable as $$
begin
    return exists (select from afl.call c where c.caller = p_task and c.status = 'open');
end $$;

-- Whether a task has answers that it has not taken.
create function afl.has_untaken_v1(p_task uuid) returns boolean language plpgsql stable as $$
begin
    return exists (select from afl.call c
                   where c.caller = p_task and c.status <> 'open' and not c.applied);
end $$;

-- I7: hands a lane, which is locked, to the next in its queue, or frees it.
create function afl.pass_lane_v1(p_tenant text, p_lane text, p_now timestamptz)
returns boolean language plpgsql as $$
declare
    successor uuid;
begin
    -- without waiting: whoever has that task locked may need a task that is locked here
    select t.id into successor from afl.task t
    where t.tenant = p_tenant and t.lane = p_lane and t.state = 'queued'
    order by t.priority desc, t.id
    limit 1
    for update nowait;
    if successor is null then
        delete from afl.lane l where l.tenant = p_tenant and l.name = p_lane;
        return false;
    end if;
    update afl.task t set
        state = 'ready',
        run_at = greatest(t.run_at, p_now),
        reason_code = case when t.run_at > p_now then 'delayed'
                           when afl.has_untaken_v1(t.id) then 'answered' else 'claimable' end,
        reason_since = p_now,
        reason_until = case when t.run_at > p_now then t.run_at end,
        reason_by = null
    where t.id = successor;
    update afl.lane l set active = successor where l.tenant = p_tenant and l.name = p_lane;
    return true;
end $$;

-- Wakes answered callers, which are locked: those that wait for nothing more, or for anything.
create function afl.wake_v1(p_callers uuid[], p_lanes boolean, p_now timestamptz)
returns void language plpgsql as $$
declare
    r record;
    holder uuid;
begin
    update afl.task t set
        state = 'ready', run_at = p_now,
        reason_code = 'answered', reason_since = p_now, reason_until = null, reason_by = null
    where t.id = any(p_callers) and t.state = 'waiting' and (t.hold or t.lane is null)
      and (t.wake = 'any' or not afl.has_open_v1(t.id));
    if not p_lanes then
        return;
    end if;
    -- those that let go of their lane while they waited have to get it back
    for r in
        select t.id, t.tenant, t.lane from afl.task t
        where t.id = any(p_callers) and t.state = 'waiting' and not t.hold and t.lane is not null
          and (t.wake = 'any' or not afl.has_open_v1(t.id))
        order by t.tenant, t.lane
    loop
        insert into afl.lane as l (tenant, name, active) values (r.tenant, r.lane, r.id)
        on conflict (tenant, name) do update set active = l.active
        returning l.active into holder;
        update afl.task t set
            state = case when holder = r.id then 'ready' else 'queued' end,
            run_at = p_now,
            reason_code = case when holder = r.id then 'answered' else 'lane_held' end,
            reason_since = p_now, reason_until = null,
            reason_by = case when holder <> r.id then holder::text end
        where t.id = r.id;
    end loop;
end $$;

-- What a task that ended this way answers to its caller.
create function afl.status_of(p_outcome text) returns text language sql immutable as $$
    select case p_outcome when 'success' then 'ok' when 'partial' then 'ok'
                          when 'failed' then 'error' else p_outcome end
$$;

create function afl.answer_of(t afl.task) returns json language sql immutable as $$
    select case when t.outcome in ('success', 'partial') then t.result else t.error end
$$;

-- Whether a call has this answer.
create function afl.same_answer_v1(c afl.call, p_status text, p_reply json) returns boolean
language sql immutable as $$
    select c.status = p_status and c.reply::jsonb is not distinct from p_reply::jsonb
$$;

-- Gives the answers of closed tasks to their callers, which are locked.
create function afl.answer_callers_v1(p_ids uuid[], p_lanes boolean, p_now timestamptz)
returns void language plpgsql as $$
declare
    callers uuid[];
begin
    with answers as (
        update afl.call k set
            status = afl.status_of(t.outcome), reply = afl.answer_of(t), replied_at = p_now
        from afl.task t
        where t.id = any(p_ids) and k.id = t.parent_call
          and k.id = any(array(select o.parent_call from afl.task o where o.id = any(p_ids)))
          and case when k.status = 'open' then true end
        returning k.caller
    )
    select array_agg(a.caller) into callers from answers a;
    if callers is not null then
        perform afl.wake_v1(callers, p_lanes, p_now);
    end if;
    if coalesce(cardinality(callers), 0) < cardinality(p_ids) then
        -- I5: what has been answered before stays so; another answer is kept as late
        insert into afl.outbox (topic, task, run, body, created_at)
        select 'late', k.caller, k.run, json_build_object(
                   'call', k.id, 'key', k.key, 'status', afl.status_of(t.outcome),
                   'body', afl.answer_of(t)), p_now
        from afl.task t join afl.call k on k.id = t.parent_call
        where t.id = any(p_ids)
          and k.id = any(array(select o.parent_call from afl.task o where o.id = any(p_ids)))
          and not afl.same_answer_v1(k, afl.status_of(t.outcome), afl.answer_of(t))
        order by array_position(p_ids, t.id);
    end if;
end $$;

-- Closes tasks, which are locked with their callers and lanes: the closed event, the answer to the
-- caller, the next of the lane. The fence is given by a commit, and null otherwise.
create function afl.close_v1(
    p_ids uuid[], p_outcomes text[], p_results json[], p_errors json[], p_deads boolean[],
    p_failures int[], p_fences bigint[], p_cards int[], p_lanes boolean, p_now timestamptz
) returns void language plpgsql as $$
declare
    answering uuid[];
    r record;
begin
    with closed as (
        update afl.task t set
            state = 'closed', outcome = x.outcome, result = x.result, error = x.error,
            dead = x.dead, closed_at = p_now, fence = null, worker = null,
            claim_token = null,
            reason_code = null, reason_since = null, reason_until = null, reason_by = null,
            failures = t.failures + x.failures,
            seq = t.seq + x.cards,
            crashes = case when x.fence is null then t.crashes else 0 end,
            committed_fence = coalesce(x.fence, t.committed_fence),
            commits = case when x.fence is null then t.commits
                           when x.fence = t.committed_fence then t.commits + 1 else 1 end
        from unnest(p_ids, p_outcomes, p_results, p_errors, p_deads, p_failures, p_fences, p_cards)
            as x(id, outcome, result, error, dead, failures, fence, cards)
        where t.id = any(p_ids) and t.id = x.id and t.state <> 'closed'
        returning t.id, t.run, t.kind, t.name, t.parent_call, t.outcome, t.dead
    ), events as (
        insert into afl.outbox (topic, task, run, body, created_at)
        select 'closed', c.id, c.run,
               json_build_object('outcome', c.outcome, 'kind', c.kind, 'name', c.name,
                                 'parent_call', c.parent_call, 'dead', c.dead),
               p_now
        from closed c order by array_position(p_ids, c.id)
    )
    select array_agg(c.id) into answering from closed c where c.parent_call is not null;
    if answering is not null then
        perform afl.answer_callers_v1(answering, p_lanes, p_now);
    end if;
    if exists (select from afl.task k where k.caller = any(p_ids) and k.parent_call is not null
               and k.state <> 'closed') then
        insert into afl.orphan (task)
        select k.id from afl.task k where k.caller = any(p_ids) and k.parent_call is not null
          and k.state <> 'closed'
        on conflict do nothing;
    end if;
    if p_lanes then
        for r in
            select t.tenant, t.lane from afl.task t
            cross join lateral (
                select l.active from afl.lane l
                where l.tenant = t.tenant and l.name = t.lane limit 1
            ) as l
            where t.id = any(p_ids) and t.state = 'closed' and l.active = t.id
            order by t.tenant, t.lane
        loop
            perform afl.pass_lane_v1(r.tenant, r.lane, p_now);
        end loop;
    end if;
end $$;

-- Makes sure that each lane has a holder, in the order of names; the first comer of a free one is.
create function afl.take_lanes_v1(p_tenants text[], p_lanes text[], p_ids uuid[])
returns void language plpgsql as $$
declare
    r record;
begin
    for r in
        select distinct on (x.tenant, x.lane) x.tenant, x.lane, x.id
        from unnest(p_tenants, p_lanes, p_ids) with ordinality as x(tenant, lane, id, ord)
        order by x.tenant, x.lane, x.ord
    loop
        perform 1 from afl.lane l where l.tenant = r.tenant and l.name = r.lane for update;
        if not found then
            insert into afl.lane as l (tenant, name, active) values (r.tenant, r.lane, r.id)
            on conflict (tenant, name) do update set active = l.active;
        end if;
    end loop;
end $$;

-- Inserts tasks, whose lanes are taken: ready, queued, or running in the hands of an eager worker.
-- A spec that names a caller by its place in p_callers is a callee. p_only has the numbers of those
-- to insert, null for all. Answers how many were.
create function afl.insert_tasks_v1(
    p_specs json, p_inputs json[], p_only int[], p_callers uuid[],
    p_worker text, p_names text[], p_lists text[], p_n int, p_token text, p_now timestamptz
) returns int language plpgsql as $$
declare
    made int;
begin
    with s as (
        select s.*, c.id as caller, c.run as caller_run, c.depth as caller_depth,
               c.deadline as caller_deadline, l.active as holder,
               p_now + s.delay_us * interval '1 microsecond' as due,
               l.active is null or l.active = s.id as free
        from json_to_recordset(p_specs) as s(
            n int, id uuid, tenant text, run text, kind text, name text, list text, lane text,
            hold boolean, priority int, delay_us bigint, timeout_us bigint, wake text,
            max_failures int, retry_delay_us bigint, retry_backoff double precision,
            retry_max_delay_us bigint, retry_jitter boolean, max_crashes int, idem text,
            trace text, redrives uuid, at int, call uuid, call_timeout_us bigint)
        left join lateral (
            select o.id, o.run, o.depth, o.deadline from afl.task o
            where o.id = p_callers[s.at] limit 1
        ) as c on true
        left join lateral (
            select o.active from afl.lane o where o.tenant = s.tenant and o.name = s.lane limit 1
        ) as l on true
        where p_only is null or s.n = any(p_only)
    ), e as (
        select s.*, p_n > 0 and s.free and s.delay_us = 0 and s.list = any(p_lists)
            and (s.name = any(p_names) or split_part(s.name, '.', -1) = any(p_names)) as fits
        from s
    ), b as (
        select e.*, coalesce(e.fits, false)
            and row_number() over (partition by e.fits order by e.priority desc, e.id) <= p_n
            as eager
        from e
    ), f as (
        select o.*, case when o.eager then nextval('afl.fence') end as fence
        from (select b.* from b order by b.priority desc, b.id) as o
    )
    insert into afl.task (
        id, tenant, run, kind, name, short_name, list, lane, hold, parent_call, caller, depth, state, priority,
        run_at, wake, fence, last_fence, worker, claim_token, max_failures, retry_delay,
        retry_backoff, retry_max_delay, retry_jitter, max_crashes, deadline, input,
        reason_code, reason_since, reason_until, reason_by, idem, trace, redrives, created_at)
    select
        f.id, f.tenant, coalesce(f.caller_run, f.run, f.id::text), f.kind, f.name,
        split_part(f.name, '.', -1), f.list, f.lane, f.hold, f.call, f.caller, coalesce(f.caller_depth + 1, 0),
        case when f.eager then 'running' when f.free then 'ready' else 'queued' end,
        f.priority, f.due, f.wake, f.fence, f.fence,
        case when f.eager then p_worker end, case when f.eager then p_token end,
        f.max_failures, f.retry_delay_us * interval '1 microsecond', f.retry_backoff,
        f.retry_max_delay_us * interval '1 microsecond', f.retry_jitter, f.max_crashes,
        least(p_now + f.timeout_us * interval '1 microsecond',
              p_now + f.call_timeout_us * interval '1 microsecond', f.caller_deadline),
        p_inputs[f.n],
        case when f.eager then null when not f.free then 'lane_held'
             when f.due > p_now then 'delayed' else 'claimable' end,
        case when not f.eager then p_now end,
        case when not f.eager and f.free and f.due > p_now then f.due end,
        case when not f.free then f.holder::text end,
        f.idem, f.trace, f.redrives, p_now
    from f
    order by f.tenant, f.idem, f.id
    on conflict (tenant, idem) where idem is not null do nothing;
    get diagnostics made = row_count;
    return made;
end $$;

-- The answers that a task has not taken, oldest first.
create function afl.untaken_v1(p_task uuid) returns json language plpgsql stable as $$
begin
    return (select json_agg(json_build_array(
        c.id, c.key, c.callee, c.status, c.deadline, c.reply, c.replied_at
    ) order by c.replied_at, c.id)
    from afl.call c where c.caller = p_task and c.status <> 'open' and not c.applied);
end $$;

-- Whether a worker may claim.
create function afl.is_live_v1(p_worker text, p_now timestamptz) returns boolean
language plpgsql stable as $$
begin
    return exists (select from afl.worker w where w.id = p_worker and w.expires_at > p_now
                   and w.state in ('startup', 'running'));
end $$;

-- Makes tasks; a known idem answers with the task that has it. Idems differ within a request.
create function afl.enqueue_v1(
    p_specs json, p_inputs json[], p_ids uuid[], p_tenants text[], p_lanes text[], p_idems text[]
) returns table (known boolean, t afl.task)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
    v_ids uuid[] := p_ids;
    v_new int[];
begin
    if p_idems is not null then
        select array_agg(coalesce(k.id, x.id) order by x.n),
               array_agg(x.n) filter (where k.id is null)
        into v_ids, v_new
        from unnest(p_ids, p_tenants, p_idems) with ordinality as x(id, tenant, idem, n)
        left join lateral (
            select o.id from afl.task o where o.tenant = x.tenant and o.idem = x.idem limit 1
        ) as k on true;
    end if;
    if p_idems is null or v_new is not null then
        if p_lanes is not null then
            perform afl.take_lanes_v1(
                array_agg(x.tenant order by x.n), array_agg(x.lane order by x.n),
                array_agg(x.id order by x.n))
            from unnest(p_ids, p_tenants, p_lanes) with ordinality as x(id, tenant, lane, n)
            where x.lane is not null and (v_new is null or x.n = any(v_new));
        end if;
        if afl.insert_tasks_v1(p_specs, p_inputs, v_new, null, null, null, null, 0, null, v_now)
            <> coalesce(cardinality(v_new), cardinality(p_ids))
        then
            raise exception using errcode = '40001', message = 'the idem was taken just now';
        end if;
    end if;
    return query
        select x.id <> x.own, k.row from unnest(v_ids, p_ids) with ordinality as x(id, own, n)
        cross join lateral (select o as row from afl.task o where o.id = x.id limit 1) as k
        order by x.n;
end $$;

-- Moves a worker's expiry; tells which fences it has lost, which are asked to stop, and which it has
-- without naming them.
create function afl.renew_v1(p_worker text, p_held bigint[])
returns table (expires_at timestamptz, lost bigint[], stop bigint[], stray bigint[])
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
    v_expires timestamptz;
begin
    update afl.worker w set
        seen_at = v_now, expires_at = v_now + w.lease,
        state = case when w.state = 'error' then 'running' else w.state end
    where w.id = p_worker
    returning w.expires_at into v_expires;
    if not found then
        raise exception using errcode = 'AF005',
            message = format('there is no worker %s; register it first', p_worker);
    end if;
    return query
        select v_expires,
               array(select h.fence from unnest(p_held) with ordinality as h(fence, n)
                     where (select k.worker from afl.task k where k.fence = h.fence)
                         is distinct from p_worker order by h.n),
               array(select h.fence from unnest(p_held) with ordinality as h(fence, n)
                     where (select k.worker = p_worker and k.stop_requested
                            from afl.task k where k.fence = h.fence) order by h.n),
               array(select k.fence from afl.task k
                     where k.worker = p_worker and k.state = 'running'
                       and not k.fence = any(p_held) order by k.fence);
end $$;

-- A sign of life: moves the deadlines of a held task and of its call; answers the first of them.
create function afl.extend_v1(p_fence bigint, p_by interval) returns timestamptz
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
    v_until timestamptz := v_now + p_by;
    v_task afl.task;
    v_call timestamptz;
begin
    perform afl.lock_tasks_v1(array(select k.id from afl.task k where k.fence = p_fence));
    select * into v_task from afl.task k where k.fence = p_fence;
    if not found then
        raise exception using errcode = 'AF001',
            message = format('fence %s is not held; nothing was written', p_fence);
    end if;
    if v_task.parent_call is not null then
        -- I11: never past the caller's own
        v_until := least(v_until, (select p.deadline from afl.task p where p.id = v_task.caller));
        update afl.call c set deadline = greatest(c.deadline, v_until)
        where c.id = v_task.parent_call
        returning c.deadline into v_call;
    end if;
    if v_task.deadline < v_until then
        update afl.task k set deadline = v_until where k.id = v_task.id;
        v_task.deadline := v_until;
    end if;
    return least(v_call, v_task.deadline);
end $$;

-- Answers a call: the first answer wins. Tells whether the call has this answer now.
create function afl.reply_v1(p_call uuid, p_status text, p_reply json)
returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
    v_call afl.call;
    v_laned boolean;
begin
    select * into v_call from afl.call k where k.id = p_call;
    if not found then
        raise exception using errcode = 'AF005', message = format('there is no call %s', p_call);
    end if;
    select t.lane is not null and not t.hold into v_laned from afl.task t
    where t.id = v_call.caller for update;
    update afl.call k set status = p_status, reply = p_reply, replied_at = v_now
    where k.id = p_call and case when k.status = 'open' then true end;
    if found then
        perform afl.wake_v1(array[v_call.caller], v_laned, v_now);
        return true;
    end if;
    select * into v_call from afl.call k where k.id = p_call;
    if afl.same_answer_v1(v_call, p_status, p_reply) then
        return true;
    end if;
    insert into afl.outbox (topic, task, run, body, created_at)
    values ('late', v_call.caller, v_call.run, json_build_object(
        'call', v_call.id, 'key', v_call.key, 'status', p_status, 'body', p_reply), v_now);
    return false;
end $$;

-- Closes one task, which is locked with its caller.
create function afl.close_one_v1(
    p_task uuid, p_outcome text, p_error json, p_dead boolean, p_lanes boolean, p_now timestamptz
) returns void language plpgsql as $$
begin
    if p_lanes then
        perform afl.lock_lanes_v1(array[p_task], null, null);
    end if;
    perform afl.close_v1(array[p_task], array[p_outcome], array[null::json], array[p_error],
                         array[p_dead], array[0], array[null::bigint], array[0], p_lanes, p_now);
end $$;

-- Closes as canceled what does not run; asks what does, or takes its fence away.
create function afl.stop_v1(p_task uuid, p_force boolean, p_error json)
returns text
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
    v_lanes boolean := afl.lock_tasks_v1(array[p_task]);
    v_state text;
begin
    select t.state into v_state from afl.task t where t.id = p_task;
    if not found then
        raise exception using errcode = 'AF005', message = format('there is no task %s', p_task);
    elsif v_state = 'closed' then
        return 'already_closed';
    elsif v_state = 'running' and not p_force then
        update afl.task t set stop_requested = true, error = p_error, reason_code = 'stopping',
            reason_since = v_now, reason_until = null, reason_by = null
        where t.id = p_task and not t.stop_requested;
        return 'requested';
    end if;
    perform afl.close_one_v1(p_task, 'canceled', p_error, false, v_lanes, v_now);
    return 'closed';
end $$;
