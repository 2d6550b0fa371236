-- Schedules, and what became of their fire times. A schedule is changed whole, by whoever knows its
-- version; so each of its fire times is dealt with once, whoever dies.

create table afl.schedule (
    name            text collate "C" primary key,
    workflow        text not null,
    program         text not null,
    inputs          json not null,
    cron            text,
    every           interval,
    at              timestamptz,
    zone            text not null,
    starts_at       timestamptz,
    ends_at         timestamptz,
    jitter          interval not null,
    overlap         text not null,
    catch_up        text not null,
    catch_up_within interval not null,
    owner           text,
    paused          boolean not null,
    next_fire       timestamptz,
    waiting         timestamptz,
    look_at         timestamptz,
    version         bigint not null,
    created_at      timestamptz not null,
    constraint schedule_times check (num_nonnulls(cron, every, at) = 1)
) with (fillfactor = 80);

create index schedule_look on afl.schedule (look_at) where look_at is not null;
create index schedule_owner on afl.schedule (owner, name) where owner is not null;

create table afl.schedule_firing (
    number   bigint generated always as identity primary key,
    schedule text collate "C" not null,
    fire_at  timestamptz not null,
    outcome  text not null,
    run      uuid,
    until    timestamptz,
    count    integer not null,
    note     text not null,
    at       timestamptz not null,
    constraint firing_outcome check (outcome in ('started', 'skipped', 'missed', 'failed'))
);

create index firing_by_schedule on afl.schedule_firing (schedule, number);
-- A run is started for a fire time once.
create unique index firing_started on afl.schedule_firing (schedule, fire_at) where run is not null;
create index firing_runs on afl.schedule_firing (schedule, number) where run is not null;
create index firing_age on afl.schedule_firing (at);

-- Puts a schedule in the place of the one with that version; none is there with version 0.
create function afl.write_schedule_v1(p_schedule json) returns void language plpgsql as $$
declare
    n afl.schedule := json_populate_record(null::afl.schedule, p_schedule);
    -- one that is made anew under an old name has no version that the old one had
    v_version bigint := extract(epoch from afl.now()) * 1000000;
begin
    if n.version = 0 then
        insert into afl.schedule (
            name, workflow, program, inputs, cron, every, at, zone, starts_at, ends_at, jitter,
            overlap, catch_up, catch_up_within, owner, paused, next_fire, waiting, look_at,
            version, created_at)
        values (
            n.name, n.workflow, n.program, n.inputs, n.cron, n.every, n.at, n.zone, n.starts_at,
            n.ends_at, n.jitter, n.overlap, n.catch_up, n.catch_up_within, n.owner, n.paused,
            n.next_fire, n.waiting, n.look_at, v_version, afl.now())
        on conflict do nothing;
    else
        update afl.schedule s set
            workflow = n.workflow, program = n.program, inputs = n.inputs, cron = n.cron,
            every = n.every, at = n.at, zone = n.zone, starts_at = n.starts_at,
            ends_at = n.ends_at, jitter = n.jitter, overlap = n.overlap, catch_up = n.catch_up,
            catch_up_within = n.catch_up_within, owner = n.owner, paused = n.paused,
            next_fire = n.next_fire, waiting = n.waiting, look_at = n.look_at,
            version = s.version + 1
        where s.name = n.name and s.version = n.version;
    end if;
    if not found then
        raise exception 'the schedule % was changed meanwhile', n.name using errcode = 'AF001';
    end if;
end $$;

-- Takes schedules that have to be looked at; others leave them alone for a while. Answers them with
-- the time, and when the next one is due: at least one row.
create function afl.take_due_v1(p_hold interval, p_limit int)
returns table (now timestamptz, next_look timestamptz, taken afl.schedule) language plpgsql as $$
declare
    v_now timestamptz := afl.now();
    v_next timestamptz;
    v_any boolean := false;
    r afl.schedule;
begin
    select s.look_at into v_next from afl.schedule s
    where s.look_at > v_now order by s.look_at limit 1;
    for r in
        select s.* from afl.schedule s where s.look_at <= v_now
        order by s.look_at limit p_limit for update skip locked
    loop
        r.look_at := v_now + p_hold;
        update afl.schedule s set look_at = r.look_at where s.name = r.name;
        v_any := true;
        return query select v_now, v_next, r;
    end loop;
    if not v_any then
        return query select v_now, v_next, null::afl.schedule;
    end if;
end $$;
