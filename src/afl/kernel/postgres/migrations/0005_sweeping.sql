-- What time made wrong, and what is old. For locks, plans and refusals see 0002.

-- Sweeping: one item each. Null: somebody else is at it, or there is nothing to do any more.

-- Gives a worker up that did not renew in time.
create function afl.expire_worker_v1(p_worker text) returns text language plpgsql as $$
begin
    update afl.worker w set state = 'error'
    where w.id = (select x.id from afl.worker x
                  where x.id = p_worker and x.expires_at <= afl.now()
                    and x.state in ('startup', 'running')
                  for update skip locked);
    return case when found then 'workers_expired' end;
end $$;

-- Takes a task from a worker that is lost: ready again, canceled, or given up.
create function afl.recover_v1(p_task uuid, p_error json) returns text
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
    k afl.task;
    v_lanes boolean;
begin
    select * into k from afl.task t
    where t.id = p_task and case when t.state = 'running' then true end
    for update skip locked;
    if not found then
        return null;
    end if;
    -- shared, so that a renewal either comes before or sees that the task is lost
    perform 1 from afl.worker w where w.id = k.worker and w.expires_at <= v_now
    for share skip locked;
    if not found then
        return null;
    end if;
    if not k.stop_requested and k.crashes < k.max_crashes then
        update afl.task t set
            state = 'ready', fence = null, worker = null, claim_token = null, run_at = v_now,
            crashes = t.crashes + 1, reason_code = 'crashed', reason_since = v_now,
            reason_until = v_now, reason_by = null
        where t.id = p_task;
        return 'tasks_recovered';
    end if;
    v_lanes := afl.lock_tasks_v1(array[p_task]);
    if k.stop_requested then
        perform afl.close_one_v1(p_task, 'canceled', k.error, false, v_lanes, v_now);
        return 'tasks_recovered';
    end if;
    update afl.task t set crashes = t.crashes + 1 where t.id = p_task;
    perform afl.close_one_v1(p_task, 'failed', p_error, true, v_lanes, v_now);
    return 'tasks_given_up';
end $$;

-- Answers a call as timeout and stops its callee.
create function afl.time_out_call_v1(p_call uuid, p_error json) returns text
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
    c afl.call;
    v_lanes boolean;
begin
    select * into c from afl.call x where x.id = p_call;
    perform 1 from afl.task t where t.id = c.callee for update skip locked;
    if not found then
        return null;
    end if;
    v_lanes := afl.lock_tasks_v1(array[c.callee]);
    if v_lanes then
        perform afl.lock_lanes_v1(array[c.callee], null, null);
    end if;
    update afl.call x set status = 'timeout', reply = p_error, replied_at = v_now
    where x.id = p_call and case when x.status = 'open' then x.deadline <= v_now end;
    if not found then
        return null;
    end if;
    perform afl.wake_v1(array[c.caller], v_lanes, v_now);
    perform afl.stop_v1(c.callee, false, p_error);
    return 'calls_timed_out';
end $$;

-- Closes a task that is past its deadline, fence or not.
create function afl.time_out_task_v1(p_task uuid, p_error json) returns text
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
begin
    perform 1 from afl.task t
    where t.id = p_task and case when t.state <> 'closed' then t.deadline <= v_now end
    for update skip locked;
    if not found then
        return null;
    end if;
    perform afl.close_one_v1(p_task, 'timeout', p_error, false, afl.lock_tasks_v1(array[p_task]),
                             v_now);
    return 'tasks_timed_out';
end $$;

-- Stops a task whose caller is closed.
create function afl.stop_orphan_v1(p_task uuid, p_error json) returns text
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
begin
    perform 1 from afl.task t join afl.task p on p.id = t.caller
    where t.id = p_task and t.state <> 'closed' and not t.stop_requested and p.state = 'closed'
    for update of t skip locked;
    if not found then
        return null;
    end if;
    perform afl.stop_v1(p_task, false, p_error);
    delete from afl.orphan o where o.task = p_task;
    return 'orphans_stopped';
end $$;

-- I7: gives a lane that nobody holds to the first that queues for it.
create function afl.mend_lane_v1(p_tenant text, p_lane text) returns text
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
begin
    perform 1 from afl.task t where t.tenant = p_tenant and t.lane = p_lane and t.state = 'queued'
    for update skip locked;
    if not found then
        return null;
    end if;
    insert into afl.lane (tenant, name, active)
    select t.tenant, t.lane, t.id from afl.task t
    where t.tenant = p_tenant and t.lane = p_lane and t.state = 'queued'
    order by t.priority desc, t.id limit 1
    on conflict do nothing;
    if not found then
        return null;
    end if;
    perform afl.pass_lane_v1(p_tenant, p_lane, afl.now());
    return 'lanes_promoted';
end $$;

-- Registers levels in which something is ready and which nobody has registered, as after a change
-- by hand, and removes notes that newer ones have replaced. Answers how many levels were missing.
create function afl.mend_levels_v1() returns int
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set jit = off as $$
declare
    v_list text := '';
    v_short text := '';
    v_priority int;
    v_made int := 0;
begin
    -- from level to level along the index, without reading what is inside them
    loop
        select k.list, k.short_name, k.priority into v_list, v_short, v_priority from afl.task k
        where k.state = 'ready' and (k.list, k.short_name) > (v_list, v_short)
        order by k.list, k.short_name, k.priority desc limit 1;
        exit when not found;
        while v_priority is not null loop
            insert into afl.claim_level (list, short_name, priority)
            values (v_list, v_short, v_priority) on conflict do nothing;
            v_made := v_made + found::int;
            v_priority := (
                select k.priority from afl.task k
                where k.state = 'ready' and k.list = v_list and k.short_name = v_short
                  and k.priority < v_priority
                order by k.priority desc limit 1);
        end loop;
    end loop;
    delete from afl.claim_floor f using afl.claim_level l
    where f.list = l.list and f.short_name = l.short_name and f.priority = l.priority
      and f.number < (
          select o.number from afl.claim_floor o
          where o.list = l.list and o.short_name = l.short_name and o.priority = l.priority
          order by o.number desc limit 1);
    return v_made;
end $$;

-- The tasks of a run. A task without a run has started one, which has the name of its id.
create function afl.tasks_of_v1(p_run text) returns setof afl.task language plpgsql stable as $$
begin
    return query select t.* from afl.task t where t.run = p_run and t.run <> t.id::text;
    if p_run ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        return query select t.* from afl.task t where t.id = p_run::uuid and t.run = p_run;
    end if;
end $$;

-- Removes finished runs whose every task closed that long ago; answers how many tasks went.
create function afl.rotate_v1(p_older_than interval, p_limit int) returns int language plpgsql as $$
declare
    v_before timestamptz := afl.now() - p_older_than;
    v_gone int := 0;
    v_ids uuid[];
    r record;
begin
    for r in
        select distinct on (t.closed_at, t.run) t.run from afl.task t
        where t.state = 'closed' and t.depth = 0 and t.closed_at <= v_before
        order by t.closed_at, t.run
    loop
        exit when v_gone >= p_limit;
        continue when exists (
            select from afl.tasks_of_v1(r.run) as t
            where t.state <> 'closed' or t.closed_at > v_before);
        v_ids := array(select t.id from afl.tasks_of_v1(r.run) as t);
        perform 1 from afl.task t where t.id = any(v_ids) for update;
        delete from afl.call c where c.caller = any(v_ids);
        delete from afl.box_card b where b.box = any(v_ids::text[]);
        delete from afl.orphan o where o.task = any(v_ids);
        delete from afl.task t where t.id = any(v_ids);
        v_gone := v_gone + cardinality(v_ids);
    end loop;
    return v_gone;
end $$;
