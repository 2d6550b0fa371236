-- Which workers were lost that had a task. The count in the task's row starts anew with every commit.
create table afl.loss (
    task    uuid not null,
    fence   bigint not null,
    worker  text not null,
    lost_at timestamptz not null,
    primary key (task, fence)
);

-- Takes a task from a worker that is lost: ready again, canceled, or given up.
create or replace function afl.recover_v1(p_task uuid, p_error json) returns text
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
    insert into afl.loss (task, fence, worker, lost_at) values (p_task, k.fence, k.worker, v_now);
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

-- Removes finished runs whose every task closed that long ago; answers how many tasks went.
create or replace function afl.rotate_v1(p_older_than interval, p_limit int) returns int language plpgsql as $$
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
        delete from afl.loss l where l.task = any(v_ids);
        delete from afl.task t where t.id = any(v_ids);
        v_gone := v_gone + cardinality(v_ids);
    end loop;
    return v_gone;
end $$;
