-- Mailboxes of agents. A message is in one table at a time: `mail` while it lives, `mail_dead` when
-- it was given up, none when it was acknowledged; `mail_count` knows how many went which way.

-- What `configure` sets, for everybody. One row.
create table afl.mail_config (
    one            boolean primary key default true,
    queue_size     integer not null default 10000,
    retry_attempts integer not null default 3,
    backoff_base   double precision not null default 1,
    backoff_factor double precision not null default 2,
    backoff_max    double precision not null default 30,
    fairness       text not null default 'strict',
    dedupe_seconds double precision not null default 86400,
    version        bigint not null default 0,
    constraint mail_config_one check (one),
    constraint mail_config_sense check (
        queue_size >= 1 and retry_attempts >= 0 and backoff_base > 0 and backoff_factor >= 1
        and backoff_max > 0 and dedupe_seconds > 0 and fairness in ('strict', 'weighted'))
);

insert into afl.mail_config default values;

-- Messages that wait, or that somebody has until the deadline. `receipt` is the call that received
-- it, `place` where it stood in the answer: who did not hear the answer gets the same again.
create table afl.mail (
    id         bigint primary key generated always as identity,
    recipient  text collate "C" not null,
    message_id text collate "C" not null,
    type       text not null,
    priority   smallint not null,
    body       text not null,
    sent_at    timestamptz not null,
    ready_at   timestamptz not null,
    expires_at timestamptz,
    attempts   integer not null default 0,
    last_error text,
    receipt    text collate "C",
    place      integer,
    deadline   timestamptz,
    constraint mail_priority check (priority in (1, 5, 9)),
    constraint mail_type check (type in ('request', 'response', 'event')),
    constraint mail_hold check (num_nulls(receipt, place, deadline) in (0, 3)),
    constraint mail_attempts check (attempts >= 0 and (deadline is null or attempts > 0))
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.05
);

create index mail_ready on afl.mail (recipient, priority, ready_at, id) where deadline is null;
create index mail_held on afl.mail (recipient, deadline) where deadline is not null;
create index mail_expiring on afl.mail (recipient, expires_at)
    where expires_at is not null and attempts = 0;

-- Messages that were given up, the oldest first by number.
create table afl.mail_dead (
    number     bigint primary key generated always as identity,
    recipient  text collate "C" not null,
    message_id text collate "C" not null,
    type       text not null,
    priority   smallint not null,
    body       text not null,
    sent_at    timestamptz not null,
    attempts   integer not null,
    last_error text,
    reason     text not null,
    died_at    timestamptz not null,
    constraint mail_dead_reason check (reason in ('permanent', 'retries', 'expired'))
);

create index mail_dead_of on afl.mail_dead (recipient, number);

-- Ids that were sent: sending one again changes nothing while it is remembered.
create table afl.mail_seen (
    recipient  text collate "C" not null,
    message_id text collate "C" not null,
    until      timestamptz not null,
    primary key (recipient, message_id)
);

create index mail_seen_until on afl.mail_seen (until);

-- How many messages of a mailbox went which way. The sum over the slots counts; there are several,
-- so that those who change them rarely wait for each other. A row is changed by every message, best
-- on one page.
create table afl.mail_count (
    recipient text collate "C" not null,
    slot      smallint not null,
    sent      bigint not null,
    acked     bigint not null,
    purged    bigint not null,
    living    bigint not null,
    primary key (recipient, slot)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- Whose turn it is in a weighted mailbox.
create table afl.mail_turn (
    recipient text collate "C" primary key,
    turn      bigint not null
) with (fillfactor = 50);

create table afl.mail_subscription (
    id        text collate "C" primary key,
    recipient text collate "C" not null,
    types     text[] not null,
    constraint mail_subscription_types check (
        types <> '{}' and types <@ array['request', 'response', 'event'])
);

create index mail_subscription_of on afl.mail_subscription (recipient);

-- What was answered lately, for who did not hear it and asks again. The ids of operations begin
-- with their time.
create table afl.mail_answer (
    operation uuid primary key,
    answer    text not null
);

-- Adds to the counts of a mailbox.
create function afl.count_mail_v1(
    p_recipient text, p_sent bigint, p_acked bigint, p_purged bigint, p_living bigint
) returns void language plpgsql as $$
begin
    insert into afl.mail_count as c (recipient, slot, sent, acked, purged, living)
    values (p_recipient, pg_backend_pid() % 16, p_sent, p_acked, p_purged, p_living)
    on conflict (recipient, slot) do update set
        sent = c.sent + excluded.sent,
        acked = c.acked + excluded.acked,
        purged = c.purged + excluded.purged,
        living = c.living + excluded.living;
end $$;

-- How many more messages a mailbox takes. Far from full nobody waits for anybody: what others have
-- under way is not counted, and is far less than what is left. Near to it, and for `p_exact`, all
-- take turns; whoever came before, and thought it far, has to end first.
create function afl.mail_room_v1(p_recipient text, p_queue_size bigint, p_exact boolean)
returns bigint language plpgsql as $$
declare
    v_key bigint := hashtextextended('afl mail ' || p_recipient, 0);
    v_room bigint;
begin
    select p_queue_size - coalesce(sum(c.living), 0) into v_room
    from afl.mail_count c where c.recipient = p_recipient;
    if v_room > 500 and not p_exact then
        perform pg_advisory_xact_lock_shared(v_key);
        return v_room;
    end if;
    perform pg_advisory_xact_lock(v_key);
    select p_queue_size - coalesce(sum(c.living), 0) into v_room
    from afl.mail_count c where c.recipient = p_recipient;
    return v_room;
end $$;

-- Puts messages into mailboxes. Of each: sent, known (it was sent before) or full; with `p_whole` a
-- full mailbox is an error instead, after which trying again later is right.
create function afl.send_mail_v1(
    p_recipients text[], p_ids text[], p_types text[], p_priorities int[], p_bodies text[],
    p_delays double precision[], p_ttls double precision[], p_whole boolean
) returns table (place bigint, outcome text) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    v_now timestamptz := afl.now();
    c afl.mail_config;
    m record;
    v_outcome text;
begin
    select * into strict c from afl.mail_config;
    for m in
        select * from unnest(
            p_recipients, p_ids, p_types, p_priorities, p_bodies, p_delays, p_ttls)
            with ordinality as x (recipient, id, type, priority, body, delay, ttl, number)
        -- everybody goes through mailboxes in one order
        order by x.recipient, x.number
    loop
        v_outcome := 'known';
        if afl.mail_room_v1(m.recipient, c.queue_size, false) < 1 then
            perform 1 from afl.mail_seen s
            where s.recipient = m.recipient and s.message_id = m.id and s.until > v_now;
            if not found and p_whole then
                raise exception 'The mailbox % is full (% messages); let its agent take some, or '
                    'configure a larger queue_size.', m.recipient, c.queue_size
                    using errcode = '53400';
            elsif not found then
                v_outcome := 'full';
            end if;
        else
            insert into afl.mail_seen as s (recipient, message_id, until)
            values (m.recipient, m.id, v_now + make_interval(secs => c.dedupe_seconds))
            on conflict (recipient, message_id) do update set until = excluded.until
                where s.until <= v_now;
            if found then
                insert into afl.mail (
                    recipient, message_id, type, priority, body, sent_at, ready_at, expires_at)
                values (
                    m.recipient, m.id, m.type, m.priority, m.body, v_now,
                    v_now + make_interval(secs => m.delay), v_now + make_interval(secs => m.ttl));
                perform afl.count_mail_v1(m.recipient, 1, 0, 0, 1);
                v_outcome := 'sent';
            end if;
        end if;
        place := m.number;
        outcome := v_outcome;
        return next;
    end loop;
end $$;

-- Takes back what is held too long, and buries what nobody came for in time: some of each. Tells how
-- many were held too long, and how many are dead now.
create function afl.sweep_mail_v1(
    p_recipient text, p_now timestamptz, p_limit int, out late bigint, out buried bigint
) language plpgsql as $$
declare
    v_retries int;
    v_expired bigint;
begin
    select c.retry_attempts into strict v_retries from afl.mail_config c;
    with held as materialized (
        select m.id from afl.mail m
        where m.recipient = p_recipient and m.deadline <= p_now and m.deadline is not null
        order by m.deadline limit p_limit for update skip locked
    ), dead as (
        delete from afl.mail m using held h
        where m.id = h.id and m.attempts > v_retries returning m.*
    ), grave as (
        insert into afl.mail_dead (
            recipient, message_id, type, priority, body, sent_at, attempts, last_error, reason,
            died_at)
        select d.recipient, d.message_id, d.type, d.priority, d.body, d.sent_at, d.attempts,
               'visibility timeout', 'retries', p_now
        from dead d order by d.deadline, d.place
    ), freed as (
        update afl.mail m set
            receipt = null, place = null, deadline = null, last_error = 'visibility timeout'
        from held h where m.id = h.id and m.attempts <= v_retries
    )
    select (select count(*) from held), (select count(*) from dead) into late, buried;
    with dead as (
        delete from afl.mail m
        where m.id in (
            select x.id from afl.mail x
            where x.recipient = p_recipient and x.expires_at <= p_now
              and x.expires_at is not null and x.attempts = 0
            order by x.expires_at limit p_limit for update skip locked)
        returning m.*
    ), grave as (
        insert into afl.mail_dead (
            recipient, message_id, type, priority, body, sent_at, attempts, last_error, reason,
            died_at)
        select d.recipient, d.message_id, d.type, d.priority, d.body, d.sent_at, d.attempts,
               d.last_error, 'expired', p_now
        from dead d order by d.expires_at
    )
    select count(*) from dead into v_expired;
    buried := buried + v_expired;
    if buried > 0 then
        perform afl.count_mail_v1(p_recipient, 0, 0, 0, -buried);
    end if;
end $$;

-- Whether a sweep of this mailbox would find anything.
create function afl.mail_is_late_v1(p_recipient text, p_now timestamptz) returns boolean
language plpgsql as $$
begin
    return exists (select from afl.mail m where m.recipient = p_recipient
                     and m.deadline <= p_now and m.deadline is not null)
        or exists (select from afl.mail m where m.recipient = p_recipient
                     and m.expires_at <= p_now and m.expires_at is not null and m.attempts = 0);
end $$;

-- Takes the next messages of one priority.
create function afl.take_mail_v1(
    p_recipient text, p_priority int, p_limit int, p_types text[], p_receipt text, p_place int,
    p_now timestamptz, p_deadline timestamptz
) returns setof afl.mail language plpgsql as $$
begin
    return query with next as materialized (
        select m.id, m.ready_at from afl.mail m
        where m.recipient = p_recipient and m.deadline is null and m.priority = p_priority
          and m.ready_at <= p_now and (p_types is null or m.type = any(p_types))
        order by m.ready_at, m.id limit p_limit for update skip locked
    ), numbered as (
        select n.id, row_number() over (order by n.ready_at, n.id)::int as number from next n
    )
    update afl.mail m set
        attempts = m.attempts + 1, receipt = p_receipt, place = p_place + n.number,
        deadline = p_deadline
    from numbered n where m.id = n.id
    returning m.*;
end $$;

-- The next messages, for a while. The first row tells how many were buried on the way, and after
-- how many seconds something may be ready if nothing was. `p_round` is whose turn it is in a
-- weighted mailbox.
create function afl.receive_mail_v1(
    p_recipient text, p_receipt text, p_limit int, p_visibility double precision, p_round int[],
    p_again boolean
) returns table (
    place int, id bigint, body text, priority smallint, sent_at timestamptz, attempts int,
    last_error text, deadline timestamptz, buried bigint, due double precision
) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
#variable_conflict use_column
declare
    v_now timestamptz := afl.now();
    v_deadline timestamptz := v_now + make_interval(secs => p_visibility);
    v_fairness text;
    v_types text[];
    v_levels int[] := '{9,5,1}';
    v_level int;
    v_turn bigint;
    v_taken int := 0;
    v_found int;
    v_late bigint := 0;
    v_buried bigint := 0;
begin
    if p_again then
        return query select m.place, m.id, m.body, m.priority, m.sent_at, m.attempts, m.last_error,
                            m.deadline, 0::bigint, null::double precision
                     from afl.mail m
                     where m.recipient = p_recipient and m.deadline > v_now
                       and m.deadline is not null and m.receipt = p_receipt;
        if found then
            return;
        end if;
    end if;
    if afl.mail_is_late_v1(p_recipient, v_now) then
        select s.late, s.buried into v_late, v_buried
        from afl.sweep_mail_v1(p_recipient, v_now, 1000) s;
    end if;
    select c.fairness into strict v_fairness from afl.mail_config c;
    select array_agg(t) into v_types
    from afl.mail_subscription s, unnest(s.types) as t where s.recipient = p_recipient;
    if v_fairness = 'weighted' then
        insert into afl.mail_turn (recipient, turn) values (p_recipient, 0)
        on conflict (recipient) do nothing;
        select t.turn into v_turn from afl.mail_turn t where t.recipient = p_recipient for update;
    end if;
    while v_taken < p_limit and v_levels <> '{}' loop
        v_level := v_levels[1];
        if v_fairness = 'weighted' then
            v_level := p_round[1 + (v_turn + v_taken) % cardinality(p_round)];
            if not v_level = any(v_levels) then
                v_level := v_levels[1];
            end if;
        end if;
        return query select m.place, m.id, m.body, m.priority, m.sent_at, m.attempts, m.last_error,
                            m.deadline, null::bigint, null::double precision
                     from afl.take_mail_v1(
                         p_recipient, v_level,
                         case when v_fairness = 'weighted' then 1 else p_limit - v_taken end,
                         v_types, p_receipt, v_taken, v_now, v_deadline) as m;
        get diagnostics v_found = row_count;
        v_taken := v_taken + v_found;
        if v_found = 0 or v_fairness = 'strict' then
            v_levels := array_remove(v_levels, v_level);
        end if;
    end loop;
    if v_fairness = 'weighted' and v_taken > 0 then
        update afl.mail_turn t set turn = t.turn + v_taken where t.recipient = p_recipient;
    end if;
    return query select 0, null::bigint, null::text, null::smallint, null::timestamptz, null::int,
                        null::text, null::timestamptz, v_buried,
                        case when v_taken = 0 then afl.mail_due_v1(p_recipient, v_now) end;
end $$;

-- After how many seconds time may make something ready; null if there is nothing.
create function afl.mail_due_v1(p_recipient text, p_now timestamptz) returns double precision
language plpgsql as $$
begin
    return (select extract(epoch from min(d.at) - p_now)::double precision from (
        select (select m.ready_at from afl.mail m
                where m.recipient = p_recipient and m.deadline is null and m.priority = l.level
                  and m.ready_at > p_now order by m.ready_at limit 1) as at
        from (values (9), (5), (1)) as l (level)
        union all
        select (select m.deadline from afl.mail m
                where m.recipient = p_recipient and m.deadline is not null
                order by m.deadline limit 1)
    ) as d);
end $$;

-- It is done. False if it is not in these hands any more.
create function afl.ack_mail_v1(
    p_recipient text, p_id bigint, p_receipt text, p_operation uuid, p_again boolean
) returns boolean language plpgsql as $$
begin
    if p_again then
        perform 1 from afl.mail_answer a where a.operation = p_operation;
        if found then
            return true;
        end if;
    end if;
    delete from afl.mail m
    where m.id = p_id and m.recipient = p_recipient and m.receipt = p_receipt
      and m.deadline > afl.now();
    if not found then
        return false;
    end if;
    perform afl.count_mail_v1(p_recipient, 0, 1, 0, -1);
    insert into afl.mail_answer (operation, answer) values (p_operation, '');
    return true;
end $$;

-- It is not done: the seconds after which it comes again, or why it is dead; null if it is not in
-- these hands any more. The backoff is added up as logarithms: the power may be larger than any
-- number.
create function afl.nack_mail_v1(
    p_recipient text, p_id bigint, p_receipt text, p_permanent boolean, p_error text,
    p_chance double precision, p_operation uuid, p_again boolean
) returns text language plpgsql as $$
declare
    v_now timestamptz := afl.now();
    c afl.mail_config;
    m afl.mail;
    v_answer text;
    v_wait double precision;
begin
    if p_again then
        select a.answer into v_answer from afl.mail_answer a where a.operation = p_operation;
        if found then
            return v_answer;
        end if;
    end if;
    select * into strict c from afl.mail_config;
    select * into m from afl.mail x
    where x.id = p_id and x.recipient = p_recipient and x.receipt = p_receipt
      and x.deadline > v_now
    for update;
    if not found then
        return null;
    end if;
    if p_permanent or m.attempts > c.retry_attempts then
        v_answer := case when p_permanent then 'permanent' else 'retries' end;
        delete from afl.mail x where x.id = p_id;
        insert into afl.mail_dead (
            recipient, message_id, type, priority, body, sent_at, attempts, last_error, reason,
            died_at)
        values (
            m.recipient, m.message_id, m.type, m.priority, m.body, m.sent_at, m.attempts, p_error,
            v_answer, v_now);
        perform afl.count_mail_v1(p_recipient, 0, 0, 0, -1);
    else
        v_wait := ln(c.backoff_base) + (m.attempts - 1) * ln(c.backoff_factor);
        v_wait := case when v_wait >= ln(c.backoff_max) then c.backoff_max else exp(v_wait) end;
        v_wait := v_wait * (1 - p_chance / 2);
        v_answer := v_wait::text;
        update afl.mail x set
            receipt = null, place = null, deadline = null, last_error = p_error,
            ready_at = v_now + make_interval(secs => v_wait)
        where x.id = p_id;
    end if;
    insert into afl.mail_answer (operation, answer) values (p_operation, v_answer);
    return v_answer;
end $$;

-- Takes back what is held too long and buries what nobody came for, in one mailbox or in all; tells
-- how many were held too long, and how many are dead now.
create function afl.recover_mail_v1(
    p_recipient text, p_operation uuid, p_again boolean, out late bigint, out buried bigint
) language plpgsql as $$
declare
    v_now timestamptz := afl.now();
    v_recipient text;
    v_swept record;
begin
    late := 0;
    buried := 0;
    if p_again then
        select a.answer::bigint into late from afl.mail_answer a where a.operation = p_operation;
        if found then
            return;
        end if;
        late := 0;
    end if;
    for v_recipient in
        select p_recipient where p_recipient is not null
        union
        select m.recipient from afl.mail m
        where p_recipient is null and m.deadline <= v_now and m.deadline is not null
        union
        select m.recipient from afl.mail m
        where p_recipient is null and m.expires_at <= v_now and m.expires_at is not null
          and m.attempts = 0
        order by 1
    loop
        loop
            select * into v_swept from afl.sweep_mail_v1(v_recipient, v_now, 1000);
            late := late + v_swept.late;
            buried := buried + v_swept.buried;
            exit when v_swept.late = 0 and v_swept.buried = 0;
        end loop;
    end loop;
    insert into afl.mail_answer (operation, answer) values (p_operation, late::text);
end $$;

-- Dead letters into the mailbox again, the oldest first, as many as it takes.
create function afl.redrive_mail_v1(
    p_recipient text, p_message_id text, p_operation uuid, p_again boolean
) returns bigint language plpgsql as $$
declare
    v_now timestamptz := afl.now();
    v_size int;
    v_count bigint;
begin
    if p_again then
        select a.answer::bigint into v_count from afl.mail_answer a
        where a.operation = p_operation;
        if found then
            return v_count;
        end if;
    end if;
    select c.queue_size into strict v_size from afl.mail_config c;
    with chosen as materialized (
        select d.number from afl.mail_dead d
        where d.recipient = p_recipient
          and (p_message_id is null or d.message_id = p_message_id)
        order by d.number
        limit greatest(0, afl.mail_room_v1(p_recipient, v_size, true)) for update
    ), gone as (
        delete from afl.mail_dead d using chosen c where d.number = c.number returning d.*
    ), back as (
        insert into afl.mail (recipient, message_id, type, priority, body, sent_at, ready_at)
        select g.recipient, g.message_id, g.type, g.priority, g.body, g.sent_at, v_now
        from gone g order by g.number
        returning 1
    )
    select count(*) into v_count from back;
    if v_count > 0 then
        perform afl.count_mail_v1(p_recipient, 0, 0, 0, v_count);
    end if;
    insert into afl.mail_answer (operation, answer) values (p_operation, v_count::text);
    return v_count;
end $$;

-- Removes dead letters for good.
create function afl.purge_mail_v1(
    p_recipient text, p_message_id text, p_operation uuid, p_again boolean
) returns bigint language plpgsql as $$
declare
    v_count bigint;
begin
    if p_again then
        select a.answer::bigint into v_count from afl.mail_answer a
        where a.operation = p_operation;
        if found then
            return v_count;
        end if;
    end if;
    delete from afl.mail_dead d
    where d.recipient = p_recipient and (p_message_id is null or d.message_id = p_message_id);
    get diagnostics v_count = row_count;
    if v_count > 0 then
        perform afl.count_mail_v1(p_recipient, 0, 0, v_count, 0);
    end if;
    insert into afl.mail_answer (operation, answer) values (p_operation, v_count::text);
    return v_count;
end $$;

-- Forgets ids whose time is over, and answers that nobody can ask for any more.
create function afl.prune_mail_v1() returns void language plpgsql as $$
declare
    v_now timestamptz := afl.now();
    v_hour_ago text := lpad(to_hex((extract(epoch from v_now - interval '1 hour') * 1000)::bigint),
                            12, '0');
begin
    delete from afl.mail_seen s
    where (s.recipient, s.message_id) in (
        select x.recipient, x.message_id from afl.mail_seen x
        where x.until <= v_now order by x.until limit 5000 for update skip locked);
    delete from afl.mail_answer a
    where a.operation < rpad(v_hour_ago, 32, '0')::uuid;
end $$;
