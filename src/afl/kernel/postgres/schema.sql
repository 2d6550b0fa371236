-- The schema as the migrations leave it, in one place, to be read. A test applies this file and the
-- migrations to two databases and compares what they have come to.

-- The rows of the kernel. The checks and unique indexes restate the state machine: a mistake in the
-- code has to hit one of them before it reaches a user. There are no foreign keys: every row is
-- found through its task, and finished runs are removed whole.

create schema if not exists afl;

-- The one clock. A test may freeze it with the setting afl.test_clock; nothing else sets that.
create function afl.now() returns timestamptz language sql volatile as
$$ select coalesce(nullif(current_setting('afl.test_clock', true), '')::timestamptz,
                   clock_timestamp()) $$;

-- I1, I9: each claim takes the next number, whatever the task.
create sequence afl.fence;

create table afl.task (
    id              uuid primary key,
    tenant          text not null,
    run             text not null,
    kind            text not null,
    name            text not null,
    short_name      text not null,
    list            text not null,
    lane            text,
    hold            boolean not null,
    parent_call     uuid,
    caller          uuid,
    depth           integer not null,
    state           text not null,
    outcome         text,
    priority        integer not null,
    run_at          timestamptz not null,
    wake            text not null,
    fence           bigint,
    worker          text,
    claim_token     text,
    last_fence      bigint,
    committed_fence bigint,
    commits         integer not null default 0,
    max_failures    integer not null,
    retry_delay     interval not null,
    retry_backoff   double precision not null,
    retry_max_delay interval not null,
    retry_jitter    boolean not null,
    crashes         integer not null default 0,
    max_crashes     integer not null,
    failures        integer not null default 0,
    deadline        timestamptz,
    stop_requested  boolean not null default false,
    input           json,
    result          json,
    error           json,
    reason_code     text,
    reason_since    timestamptz,
    reason_until    timestamptz,
    reason_by       text,
    idem            text,
    trace           text,
    seq             integer not null default 0,
    dead            boolean not null default false,
    redrives        uuid,
    created_at      timestamptz not null,
    closed_at       timestamptz,
    -- closed, and what it had to answer is in its call and not here
    told            boolean not null default false
) with (
    -- a row is written three times at least, best on one page
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.05
);

-- The state machine as constraints. They are triggers, because a check is read and prepared anew by
-- every statement that writes a row, which takes longer than all that it does; and what never changes
-- is looked at once, when the row is made.
create function afl.refuse_task(t afl.task) returns void language plpgsql as $$
declare
    flaw text := case
        when t.state not in ('queued', 'ready', 'running', 'waiting', 'closed')
            then 'unknown state'
        when t.outcome not in ('success', 'failed', 'timeout', 'canceled', 'partial')
            then 'unknown outcome'
        when t.wake not in ('all', 'any') then 'unknown wake'
        when (t.state = 'running') <> (t.fence is not null) then 'I3: running is to have a fence'
        when (t.state = 'running') <> (t.worker is not null)
            then 'I3: running is to have a worker'
        when (t.state = 'closed') <> (t.outcome is not null)
            then 'I4: closed is to have an outcome'
        when (t.state = 'closed') <> (t.closed_at is not null) then 'I4: closed is to have a time'
        when t.dead and t.state <> 'closed' then 'dead is closed'
        when t.state = 'queued' and t.lane is null then 'queued is queued for a lane'
        when t.depth < 0 or t.depth >= 20 then 'I11: too deep'
        when (t.parent_call is null) <> (t.caller is null) then 'a call has a caller'
        when t.state not in ('running', 'closed') and t.reason_code is null
            then 'whoever does not run says why'
        when t.state = 'closed' and t.reason_code is not null then 'closed needs no reason'
        when (t.reason_code is null) <> (t.reason_since is null) then 'a reason has a time'
        when t.commits < 0 or t.crashes < 0 or t.failures < 0 or t.seq < 0
            then 'counts start at 0'
        when t.short_name <> split_part(t.name, '.', -1) then 'the short name is another'
    end;
begin
    if flaw is not null then
        raise exception using errcode = 'check_violation', constraint = 'task_is_sound',
            schema = 'afl', table = 'task', message = 'this task cannot be: ' || flaw;
    end if;
end $$;

create function afl.task_is_sound() returns trigger language plpgsql as $$
begin
    -- what is right in most rows is told in few words, so that it is told fast
    if new.state = 'running' then
        if new.fence is not null and new.worker is not null and new.outcome is null
            and new.closed_at is null and not new.dead
            and (new.reason_code is null) = (new.reason_since is null)
            and least(new.commits, new.crashes, new.failures, new.seq) >= 0
        then
            return null;
        end if;
    elsif new.state = 'closed' then
        if new.fence is null and new.worker is null and new.reason_code is null
            and new.reason_since is null and new.closed_at is not null
            and new.outcome in ('success', 'failed', 'timeout', 'canceled', 'partial')
            and least(new.commits, new.crashes, new.failures, new.seq) >= 0
        then
            return null;
        end if;
    elsif new.state in ('ready', 'waiting') then
        if new.fence is null and new.worker is null and new.outcome is null
            and new.closed_at is null and not new.dead and new.reason_code is not null
            and new.reason_since is not null
            and least(new.commits, new.crashes, new.failures, new.seq) >= 0
        then
            return null;
        end if;
    end if;
    perform afl.refuse_task(new);
    return null;
end $$;

create function afl.task_is_born_sound() returns trigger language plpgsql as $$
begin
    if new.short_name <> split_part(new.name, '.', -1) or new.depth not between 0 and 19
        or new.wake not in ('all', 'any') or (new.parent_call is null) <> (new.caller is null)
    then
        perform afl.refuse_task(new);
    end if;
    return null;
end $$;

create constraint trigger task_is_sound
after insert or update of
    state, outcome, fence, worker, closed_at, dead, lane, reason_code, reason_since, commits,
    crashes, failures, seq
on afl.task for each row execute function afl.task_is_sound();

create constraint trigger task_is_born_sound
after insert or update of name, short_name, depth, wake, parent_call, caller
on afl.task for each row execute function afl.task_is_born_sound();

-- What can be claimed, in the order in which it is.
create index task_claim on afl.task (list, short_name, priority desc, run_at, id)
    where state = 'ready';
-- What a worker holds.
create index task_held on afl.task (worker) where state = 'running';
-- I1: the gate of every commit.
create unique index task_fence on afl.task (fence) where fence is not null;
-- A commit whose answer was lost is found by the fence that it presented.
create unique index task_committed_fence on afl.task (committed_fence)
    where committed_fence is not null;
-- I2: one active task per lane.
create unique index task_lane_active on afl.task (tenant, lane)
    where lane is not null and (state in ('ready', 'running') or (state = 'waiting' and hold));
create index task_lane_queue on afl.task (tenant, lane, priority desc, id)
    where state = 'queued';
-- I5: one live callee per call (a call has one caller); and the live callees of a caller.
create unique index task_live_callee on afl.task (caller, parent_call)
    where parent_call is not null and state <> 'closed';
create unique index task_idem on afl.task (tenant, idem) where idem is not null;
create index task_deadline on afl.task (deadline, id)
    where deadline is not null and state <> 'closed';
-- The tasks of a run, but for one that gave it its name: that is found by its id.
create index task_run on afl.task (run) where run <> id::text;
-- Runs that may be over, oldest first: a run is over only when its roots are.
create index task_rotation on afl.task (closed_at) where state = 'closed' and depth = 0;
create index task_dead on afl.task (id) where dead;
create unique index task_redrives on afl.task (redrives) where redrives is not null;

-- Every list, short name and priority that a task was ever made with, noted before the task is: a
-- claim need not ask the tasks themselves which priorities there are. Rows are never removed.
create table afl.claim_level (
    list       text not null,
    short_name text not null,
    priority   integer not null,
    primary key (list, short_name, priority)
);

-- From where on the claims of a level look, if what is done cannot be cleaned up, because somebody
-- has a snapshot open: before (run_at, id) there was nothing ready. The newest note counts; it is a
-- new row and not a changed one, since the newest is found at once even if nothing old can go.
create table afl.claim_floor (
    list       text not null,
    short_name text not null,
    priority   integer not null,
    number     bigint not null generated always as identity,
    run_at     timestamptz not null,
    id         uuid not null,
    noted_at   timestamptz not null,
    -- when to look below again, at the earliest
    look_at    timestamptz not null,
    -- when to see again to all of this
    tend_at    timestamptz not null,
    primary key (list, short_name, priority, number)
);

-- Who holds a lane. A free lane has no row.
create table afl.lane (
    tenant text not null,
    name   text not null,
    active uuid not null,
    primary key (tenant, name)
);

create function afl.call_is_sound(status text, replied_at timestamptz, applied boolean)
returns boolean language plpgsql immutable as $$
declare
    flaw text := case
        when status not in ('open', 'ok', 'error', 'timeout', 'canceled') then 'unknown status'
        when (status = 'open') <> (replied_at is null) then 'I5: open has no answer'
        when applied and status = 'open' then 'what is applied was answered'
    end;
begin
    if flaw is null then
        return true;
    end if;
    raise exception using errcode = 'check_violation', constraint = 'call_is_sound',
        schema = 'afl', table = 'call', message = 'this call cannot be: ' || flaw;
end $$;

create table afl.call (
    id         uuid primary key,
    run        text not null,
    caller     uuid not null,
    key        text not null,
    callee     uuid,
    status     text not null default 'open',
    deadline   timestamptz not null,
    reply      json,
    replied_at timestamptz,
    applied    boolean not null default false,
    -- has what was answered as its text `content`; `reply` is then empty, see afl.kept_v1
    card       bytea,
    constraint call_is_sound check (afl.call_is_sound(status, replied_at, applied)),
    constraint call_key unique (caller, key)
) with (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.05
);

-- What a task waits for, the first deadline first, and the answers it has not taken, by age.
create index call_open on afl.call (caller, deadline, id) where status = 'open';
create index call_untaken on afl.call (caller, replied_at, id)
    where status <> 'open' and not applied;
-- Open calls of everybody. The condition is another way to say `open`, so that it cannot be taken for
-- the index above.
create index call_deadline on afl.call (deadline, id) where replied_at is null;

-- Live callees of closed callers, until the sweep has stopped them.
create table afl.orphan (
    task uuid primary key
);

-- Which workers were lost that had a task. The count in the task's row starts anew with every commit.
create table afl.loss (
    task    uuid not null,
    fence   bigint not null,
    worker  text not null,
    lost_at timestamptz not null,
    primary key (task, fence)
);

-- The 32 bytes of a hash are kept; clients know it as `sha256:` and hexadecimal digits.
create table afl.card (
    hash    bytea primary key,
    kind    text not null,
    content json
);

-- I8: a box is numbered from 0 without gaps. A row has all that was appended at once: hash after hash,
-- the first at `seq`. A task's own box is named by its id.
create table afl.box_card (
    box   text not null,
    seq   integer not null,
    cards bytea not null,
    primary key (box, seq),
    constraint box_card_seq check (seq >= 0),
    constraint box_card_cards check (length(cards) > 0 and length(cards) % 32 = 0)
);

-- The bytes of a hash; null if that is none.
create function afl.hash_bytes(p_hash text) returns bytea language sql immutable as $$
    select case when p_hash ~ '^sha256:[0-9a-f]{64}$' then decode(substr(p_hash, 8), 'hex') end
$$;

create function afl.hash_text(p_hash bytea) returns text language sql immutable as $$
    select 'sha256:' || encode(p_hash, 'hex')
$$;

-- `id` is given when an entry is read for the first time, after its transaction has ended, so a
-- reader that asks for what comes after an id can never miss an entry that was written earlier.
create table afl.outbox (
    entry      bigint generated always as identity,
    id         bigint,
    topic      text not null,
    task       uuid not null,
    run        text not null,
    body       json,
    created_at timestamptz not null
);

create unique index outbox_id on afl.outbox (id) where id is not null;
create index outbox_unread on afl.outbox (entry) where id is null;
-- I4: exactly one closed event.
create unique index outbox_closed_once on afl.outbox (task) where topic = 'closed';
create sequence afl.outbox_number;

create table afl.worker (
    id         text primary key,
    name       text not null,
    "group"    text not null,
    service    text not null,
    lists      text[] not null,
    handlers   text[] not null,
    slots      integer not null,
    lease      interval not null,
    state      text not null,
    started_at timestamptz not null,
    seen_at    timestamptz not null,
    expires_at timestamptz not null,
    constraint worker_state check (state in ('startup', 'running', 'shutdown', 'error'))
) with (fillfactor = 70);

create table afl.user_lock (
    key        text primary key,
    token      text not null,
    expires_at timestamptz not null,
    meta       json
);
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
create function afl.same_answer_v1(c afl.call, p_status text, p_reply json) returns boolean
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
create function afl.close_v1(
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
-- Commits: one step of work each. For locks, plans and refusals see 0002.

-- I8: appends cards to the boxes of tasks, which are locked.
create function afl.write_cards_v1(
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
        delete from afl.loss l where l.task = any(v_ids);
        delete from afl.task t where t.id = any(v_ids);
        v_gone := v_gone + cardinality(v_ids);
    end loop;
    return v_gone;
end $$;
-- Agents as their operators know them: heads, inboxes, awaited tools and edges, read from the same
-- rows. An agent is a lane that turns run in; its id is the lane's name, its project the tenant.

create schema if not exists state;

-- One row per agent: what its active turn is doing. turn_epoch is the last fence of the lane.
create view state.agent_state_head as
with agent as (
    select t.tenant, t.lane, max(t.last_fence) as last_fence, max(t.created_at) as created_at,
           max(t.closed_at) as closed_at
    from afl.task t where t.kind = 'turn' and t.lane is not null
    group by t.tenant, t.lane
)
select a.tenant                                                      as project_id,
       a.lane                                                        as agent_id,
       case t.state when 'ready' then 'dispatched' when 'running' then 'running'
                    when 'waiting' then 'suspended' else 'idle' end  as status,
       t.id                                                          as active_agent_turn_id,
       t.run                                                         as active_channel_id,
       coalesce(a.last_fence, 0)                                     as turn_epoch,
       coalesce(t.depth, 0)                                          as active_recursion_depth,
       t.parent_call                                                 as parent_step_id,
       t.trace                                                       as trace_id,
       null::uuid                                                    as profile_box_id,
       null::uuid                                                    as context_box_id,
       t.id                                                          as output_box_id,
       null::text                                                    as expecting_correlation_id,
       coalesce(w.open, 0)::int                                      as waiting_tool_count,
       w.deadline                                                    as resume_deadline,
       coalesce(t.reason_since, greatest(a.closed_at, a.created_at)) as updated_at
from agent a
left join afl.lane l on l.tenant = a.tenant and l.name = a.lane
left join afl.task t on t.id = l.active and t.kind = 'turn'
left join lateral (
    select count(*) as open, min(c.deadline) as deadline from afl.call c
    where c.caller = t.id and c.status = 'open'
) as w on t.state = 'waiting';

-- What was sent to agents: turns, and the answers to what a turn has called.
create view state.agent_inbox as
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

-- What the live turns of agents have called.
create view state.turn_waiting_tools as
select t.tenant                  as project_id,
       t.lane                    as agent_id,
       t.id                      as agent_turn_id,
       coalesce(t.last_fence, 0) as turn_epoch,
       c.key                     as tool_call_id,
       c.id                      as step_id,
       k.name                    as tool_name,
       case when c.status = 'open' then 'waiting'
            when c.applied then 'applied'
            when c.status = 'timeout' then 'expired'
            when c.status = 'canceled' then 'dropped'
            else 'received' end  as wait_status,
       null::uuid                as tool_result_card_id,
       c.replied_at              as received_at,
       case when c.applied then c.replied_at end
                                 as applied_at,
       k.created_at              as created_at,
       coalesce(c.replied_at, k.created_at)
                                 as updated_at
from afl.task t
join afl.call c on c.caller = t.id
left join afl.task k on k.id = c.callee
where t.kind = 'turn' and t.lane is not null and t.state <> 'closed';

-- Who set whom to work, and who reported to whom.
create view state.execution_edges as
with call as (
    select c.id, c.run, c.caller, c.key, c.callee, c.status, c.deadline, c.reply, c.replied_at,
           c.applied, p.tenant, p.kind as caller_kind, p.lane as caller_lane, p.trace as caller_trace,
           k.kind as callee_kind, k.name as callee_name, k.lane as callee_lane, k.depth,
           k.created_at
    from afl.call c join afl.task p on p.id = c.caller join afl.task k on k.id = c.callee
)
select 'enqueue:' || t.id                as edge_id,
       t.tenant                          as project_id,
       t.run                             as channel_id,
       'enqueue'                         as primitive,
       'request'                         as edge_phase,
       p.lane                            as source_agent_id,
       t.caller                          as source_agent_turn_id,
       t.parent_call                     as source_step_id,
       t.lane                            as target_agent_id,
       t.id                              as target_agent_turn_id,
       coalesce(t.idem, t.id::text)      as correlation_id,
       'call'                            as enqueue_mode,
       t.depth                           as recursion_depth,
       t.trace                           as trace_id,
       t.parent_call                     as parent_step_id,
       json_build_object('name', t.name) as metadata,
       t.created_at                      as created_at
from afl.task t left join afl.task p on p.id = t.caller
where t.kind = 'turn'
union all
select 'tool_call:' || c.id, c.tenant, c.run, 'tool_call', 'request', c.caller_lane, c.caller, c.id,
       c.callee_lane, c.callee, c.key, 'call', c.depth, c.caller_trace, c.id,
       json_build_object('name', c.callee_name), c.created_at
from call c where c.callee_kind not in ('turn', 'join')
union all
select 'report:' || c.id, c.tenant, c.run, 'report', 'response', c.callee_lane, c.callee, c.id,
       c.caller_lane, c.caller, c.key, 'call', c.depth, c.caller_trace, c.id,
       json_build_object('name', c.callee_name, 'status', c.status), c.replied_at
from call c where c.status <> 'open' and c.callee_kind <> 'join'
union all
select 'join:' || c.id, c.tenant, c.run, 'join', 'request', c.caller_lane, c.caller, c.id,
       c.callee_lane, c.callee, c.key, 'call', c.depth, c.caller_trace, c.id,
       json_build_object('name', c.callee_name), c.created_at
from call c where c.callee_kind = 'join'
union all
select 'join:' || c.id || ':done', c.tenant, c.run, 'join', 'response', c.callee_lane, c.callee,
       c.id, c.caller_lane, c.caller, c.key, 'call', c.depth, c.caller_trace, c.id,
       json_build_object('name', c.callee_name, 'status', c.status), c.replied_at
from call c where c.callee_kind = 'join' and c.status <> 'open';

-- Since when workers could renew: nobody can while the server is away. A test that sets the clock has
-- a server that was always there.
create function afl.up_since() returns timestamptz language sql stable as
$$ select case when coalesce(current_setting('afl.test_clock', true), '') = ''
               then pg_postmaster_start_time() else '-infinity'::timestamptz end $$;
