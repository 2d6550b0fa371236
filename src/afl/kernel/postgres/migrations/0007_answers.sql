-- What is answered is kept once. A task that closes leaves its answer in the call that it served, and
-- a card that says the same can stand for it there. Hashes are kept as bytes, and what is appended to a
-- box at once is one row. For locks, plans and refusals see 0002.

-- The bytes of a hash; null if that is none.
create function afl.hash_bytes(p_hash text) returns bytea language sql immutable as $$
    select case when p_hash ~ '^sha256:[0-9a-f]{64}$' then decode(substr(p_hash, 8), 'hex') end
$$;

create function afl.hash_text(p_hash bytea) returns text language sql immutable as $$
    select 'sha256:' || encode(p_hash, 'hex')
$$;

alter table afl.card alter column hash type bytea using afl.hash_bytes(hash);

alter table afl.box_card rename column card to cards;
alter table afl.box_card alter column cards type bytea using afl.hash_bytes(cards);
alter table afl.box_card
    add constraint box_card_cards check (length(cards) > 0 and length(cards) % 32 = 0);

-- closed, and what it had to answer is in its call and not here
alter table afl.task add column told boolean not null default false;

-- has what was answered as its text `content`; `reply` is then empty, see afl.kept_v1
alter table afl.call add column card bytea;

-- The answer that a card stands for: its text, if a text was answered, else the JSON that the text is.
create function afl.kept_v1(p_card bytea, p_reply json) returns json language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    return (
        select case when p_reply is null then (k.content ->> 'content')::json
                    else to_json(k.content ->> 'content') end
        from afl.card k where k.hash = p_card);
end $$;

-- What was answered to a call.
create function afl.answer_in_v1(c afl.call) returns json language plpgsql stable as $$
begin
    return case when c.card is null then c.reply else afl.kept_v1(c.card, c.reply) end;
end $$;

-- What a task that has told its caller has answered. Volatile, so that the statement that closes a
-- task can read it.
create function afl.told_v1(p_call uuid) returns json language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    return (select afl.answer_in_v1(c) from afl.call c where c.id = p_call);
end $$;

-- Lets a card stand for an answer that was taken in, if it says the same.
create function afl.keep_answer_v1(p_call uuid, p_card text) returns void language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
    v_reply json;
    v_text text := (
        select k.content ->> 'content' from afl.card k where k.hash = afl.hash_bytes(p_card));
    v_is_text boolean;
begin
    select c.reply, json_typeof(c.reply) = 'string' into v_reply, v_is_text from afl.call c
    where c.id = p_call and c.applied and c.card is null and c.reply is not null;
    if v_text is null or not found then
        return;
    elsif v_is_text then
        if v_reply #>> '{}' <> v_text then
            return;
        end if;
    elsif v_reply::jsonb <> v_text::jsonb then
        return;
    end if;
    update afl.call c set card = afl.hash_bytes(p_card),
        reply = case when v_is_text then to_json(''::text) end
    where c.id = p_call;
exception
    when data_exception then
        null; -- the text is no JSON, so it is not the answer
end $$;

-- Whether a call has this answer.
create or replace function afl.same_answer_v1(c afl.call, p_status text, p_reply json) returns boolean
language sql stable as $$
    select c.status = p_status and afl.answer_in_v1(c)::jsonb is not distinct from p_reply::jsonb
$$;

-- Gives the answers of closed tasks to their callers, which are locked.
create function afl.answer_callers_v2(
    p_ids uuid[], p_answers json[], p_lanes boolean, p_now timestamptz
) returns void language plpgsql as $$
declare
    callers uuid[];
begin
    with answers as (
        update afl.call k set
            status = afl.status_of(t.outcome), reply = x.answer, replied_at = p_now
        from afl.task t, unnest(p_ids, p_answers) as x(id, answer)
        where t.id = any(p_ids) and t.id = x.id and k.id = t.parent_call
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
                   'body', x.answer), p_now
        from afl.task t
        join afl.call k on k.id = t.parent_call
        join unnest(p_ids, p_answers) with ordinality as x(id, answer, n) on x.id = t.id
        where t.id = any(p_ids)
          and k.id = any(array(select o.parent_call from afl.task o where o.id = any(p_ids)))
          and not afl.same_answer_v1(k, afl.status_of(t.outcome), x.answer)
        order by x.n;
    end if;
end $$;

-- Closes tasks, which are locked with their callers and lanes: the closed event, the answer to the
-- caller, the next of the lane. The fence is given by a commit, and null otherwise. What is answered
-- to a call is kept there alone.
create or replace function afl.close_v1(
    p_ids uuid[], p_outcomes text[], p_results json[], p_errors json[], p_deads boolean[],
    p_failures int[], p_fences bigint[], p_cards int[], p_lanes boolean, p_now timestamptz
) returns void language plpgsql as $$
declare
    answering uuid[];
    answers json[];
    r record;
begin
    with x as materialized (
        select x.*, x.outcome in ('success', 'partial') as has_result,
               coalesce((
                   select k.status = 'open' from afl.task o join afl.call k on k.id = o.parent_call
                   where o.id = x.id), false) as told
        from unnest(p_ids, p_outcomes, p_results, p_errors, p_deads, p_failures, p_fences, p_cards)
            as x(id, outcome, result, error, dead, failures, fence, cards)
    ), closed as (
        update afl.task t set
            state = 'closed', outcome = x.outcome, told = x.told,
            result = case when not (x.told and x.has_result) then x.result end,
            error = case when not x.told or x.has_result then x.error end,
            dead = x.dead, closed_at = p_now, fence = null, worker = null,
            claim_token = null,
            reason_code = null, reason_since = null, reason_until = null, reason_by = null,
            failures = t.failures + x.failures,
            seq = t.seq + x.cards,
            crashes = case when x.fence is null then t.crashes else 0 end,
            committed_fence = coalesce(x.fence, t.committed_fence),
            commits = case when x.fence is null then t.commits
                           when x.fence = t.committed_fence then t.commits + 1 else 1 end
        from x
        where t.id = any(p_ids) and t.id = x.id and t.state <> 'closed'
        returning t.id, t.run, t.kind, t.name, t.parent_call, t.outcome, t.dead,
            case when t.parent_call is null then null
                 when x.has_result then x.result else x.error end as answer
    ), events as (
        insert into afl.outbox (topic, task, run, body, created_at)
        select 'closed', c.id, c.run,
               json_build_object('outcome', c.outcome, 'kind', c.kind, 'name', c.name,
                                 'parent_call', c.parent_call, 'dead', c.dead),
               p_now
        from closed c order by array_position(p_ids, c.id)
    )
    select array_agg(c.id order by array_position(p_ids, c.id)),
           array_agg(c.answer order by array_position(p_ids, c.id))
    into answering, answers from closed c where c.parent_call is not null;
    if answering is not null then
        perform afl.answer_callers_v2(answering, answers, p_lanes, p_now);
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

-- I8: appends cards to the boxes of tasks, which are locked.
create or replace function afl.write_cards_v1(
    p_ids uuid[], p_repeated boolean[], p_at int[], p_hashes text[], p_kinds text[],
    p_contents json[]
) returns void language plpgsql as $$
begin
    -- in one order, so that two that write the same cards do not wait for each other
    insert into afl.card (hash, kind, content)
    select distinct on (x.hash) afl.hash_bytes(x.hash), x.kind, x.content
    from unnest(p_at, p_hashes, p_kinds, p_contents) as x(at, hash, kind, content)
    where not p_repeated[x.at]
    order by x.hash
    on conflict do nothing;
    insert into afl.box_card (box, seq, cards)
    select k.id::text, k.seq, x.cards
    from (
        select x.at, string_agg(afl.hash_bytes(x.hash), null order by x.n) as cards
        from unnest(p_at, p_hashes) with ordinality as x(at, hash, n)
        where not p_repeated[x.at] group by x.at
    ) as x
    cross join lateral (
        select o.id, o.seq from afl.task o where o.id = p_ids[x.at] limit 1
    ) as k;
end $$;

-- One step of many flows: p_tasks end, or go on if they have no outcome; p_suspends open calls or do
-- not, and are suspended. The answers to calls are marked as taken at once if the caller takes them
-- in with the same request; p_applied are those that had come before. p_locks has all of these tasks
-- and the callers of those that end, p_wake the callers that are not among these tasks, p_parents
-- those that end and may leave callees behind. The first row is about all that, the others are claims.
create or replace function afl.step_v1(
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
                outcome = x.outcome, told = x.call is not null,
                result = case when x.call is null or x.outcome not in ('success', 'partial')
                              then x.result end,
                error = case when x.outcome is null then k.error
                             when x.call is null or x.outcome in ('success', 'partial')
                             then x.error end,
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

drop function afl.answer_callers_v1(uuid[], boolean, timestamptz);
drop function afl.answer_of(afl.task);

-- What was sent to agents: turns, and the answers to what a turn has called.
create or replace view state.agent_inbox as
select t.id                                as inbox_id,
       t.tenant                            as project_id,
       t.lane                              as agent_id,
       t.run                               as channel_id,
       'turn'                              as message_type,
       'call'                              as enqueue_mode,
       coalesce(t.idem, t.id::text)        as correlation_id,
       t.id                                as agent_turn_id,
       coalesce(t.last_fence, 0)           as turn_epoch,
       json_build_object('traceparent', t.trace, 'CG-Recursion-Depth', t.depth)
                                           as context_headers,
       t.input                             as payload,
       case when t.state = 'closed' and t.last_fence is null then 'skipped'
            when t.state = 'closed' and t.outcome in ('failed', 'timeout') then 'error'
            when t.state = 'closed' then 'consumed'
            when t.state = 'queued' and t.committed_fence is null then 'queued'
            when t.state = 'ready' and t.run_at > afl.now() then 'deferred'
            when t.state = 'ready' and t.committed_fence is null then 'pending'
            when t.state = 'running' and t.committed_fence is null then 'processing'
            else 'consumed' end            as status,
       t.failures + t.crashes              as retry_count,
       t.run_at                            as next_retry_at,
       case when t.told and t.outcome not in ('success', 'partial')
            then afl.told_v1(t.parent_call) else t.error end
                                           as last_error,
       case when t.state = 'ready' and t.run_at > afl.now() then t.reason_code end
                                           as defer_reason,
       case when t.last_fence is not null then coalesce(t.closed_at, t.run_at) end
                                           as processed_at,
       t.closed_at                         as archived_at,
       t.created_at                        as created_at
from afl.task t
where t.kind = 'turn' and t.lane is not null
union all
select c.id, t.tenant, t.lane, c.run,
       case c.status when 'timeout' then 'timeout' else 'tool_result' end,
       'call', c.key, t.id, coalesce(t.last_fence, 0),
       json_build_object('traceparent', t.trace, 'CG-Recursion-Depth', t.depth),
       case when c.card is null then c.reply else afl.kept_v1(c.card, c.reply) end,
       case when c.applied then 'consumed' when t.state = 'closed' then 'skipped'
            when t.state = 'running' then 'processing' else 'pending' end,
       0, c.replied_at, null, null,
       case when c.applied then c.replied_at end,
       case when t.state = 'closed' then t.closed_at end,
       c.replied_at
from afl.call c join afl.task t on t.id = c.caller
where c.status <> 'open' and t.kind = 'turn' and t.lane is not null;
