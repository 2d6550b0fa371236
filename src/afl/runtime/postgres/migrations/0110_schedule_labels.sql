-- Labels of the runs that a schedule starts.
alter table afl.schedule add column labels json not null default '{}';

-- Puts a schedule in the place of the one with that version; none is there with version 0. Processes
-- of the release before name no labels.
create or replace function afl.write_schedule_v1(p_schedule json) returns void language plpgsql as $$
declare
    n afl.schedule := json_populate_record(null::afl.schedule, p_schedule);
    -- one that is made anew under an old name has no version that the old one had
    v_version bigint := extract(epoch from afl.now()) * 1000000;
begin
    if n.version = 0 then
        insert into afl.schedule (
            name, workflow, program, inputs, cron, every, at, zone, starts_at, ends_at, jitter,
            overlap, catch_up, catch_up_within, owner, paused, next_fire, waiting, look_at,
            version, created_at, labels)
        values (
            n.name, n.workflow, n.program, n.inputs, n.cron, n.every, n.at, n.zone, n.starts_at,
            n.ends_at, n.jitter, n.overlap, n.catch_up, n.catch_up_within, n.owner, n.paused,
            n.next_fire, n.waiting, n.look_at, v_version, afl.now(),
            coalesce(n.labels, '{}'))
        on conflict do nothing;
    else
        update afl.schedule s set
            workflow = n.workflow, program = n.program, inputs = n.inputs, cron = n.cron,
            every = n.every, at = n.at, zone = n.zone, starts_at = n.starts_at,
            ends_at = n.ends_at, jitter = n.jitter, overlap = n.overlap, catch_up = n.catch_up,
            catch_up_within = n.catch_up_within, owner = n.owner, paused = n.paused,
            next_fire = n.next_fire, waiting = n.waiting, look_at = n.look_at,
            version = s.version + 1, labels = coalesce(n.labels, s.labels)
        where s.name = n.name and s.version = n.version;
    end if;
    if not found then
        raise exception 'the schedule % was changed meanwhile', n.name using errcode = 'AF001';
    end if;
end $$;
