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
    closed_at       timestamptz
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

create table afl.card (
    hash    text primary key,
    kind    text not null,
    content json
);

-- I8: a box is numbered from 0 without gaps. A task's own box is named by its id.
create table afl.box_card (
    box  text not null,
    seq  integer not null,
    card text not null,
    primary key (box, seq),
    constraint box_card_seq check (seq >= 0)
);

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
