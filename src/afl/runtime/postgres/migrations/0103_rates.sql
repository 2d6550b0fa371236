-- Slots in time, for facets that may start only so often. A slot is taken before the call that uses
-- it is committed; one that is lost in between is wasted, and nothing else.

-- The last slot of a facet and a key, and how many before it may matter.
create table afl.rate (
    facet   text not null,
    key     text not null,
    last    bigint not null,
    most    integer not null,
    ends_at timestamptz not null,
    primary key (facet, key)
);

create index rate_end on afl.rate (ends_at);

create table afl.rate_slot (
    facet     text not null,
    key       text not null,
    number    bigint not null,
    starts_at timestamptz not null,
    primary key (facet, key, number)
);

-- Takes the next slots: each starts no earlier than the one `p_max` before it plus `p_per`. So of
-- any `p_max` + 1 of them two are a multiple of `p_max` apart, and lie in no common stretch.
create function afl.reserve_slots_v1(
    p_facet text, p_key text, p_max int, p_per interval, p_count int
) returns setof interval language plpgsql as $$
declare
    v_now timestamptz;
    v_last bigint;
    v_most int;
    v_start timestamptz;
begin
    -- the row is the lock; what is read after it is what others have left
    insert into afl.rate as r (facet, key, last, most, ends_at)
    values (p_facet, p_key, p_count, p_max, afl.now())
    on conflict (facet, key) do update set
        last = r.last + p_count, most = greatest(r.most, p_max)
    returning r.last, r.most into v_last, v_most;
    v_now := afl.now();
    for v_number in v_last - p_count + 1 .. v_last loop
        select greatest(v_now, s.starts_at + p_per) into v_start from afl.rate_slot s
        where s.facet = p_facet and s.key = p_key and s.number = v_number - p_max;
        v_start := coalesce(v_start, v_now);
        insert into afl.rate_slot (facet, key, number, starts_at)
        values (p_facet, p_key, v_number, v_start);
        return next v_start - v_now;
    end loop;
    delete from afl.rate_slot s
    where s.facet = p_facet and s.key = p_key and s.number <= v_last - v_most;
    update afl.rate r set ends_at = greatest(r.ends_at, v_start + p_per)
    where r.facet = p_facet and r.key = p_key;
end $$;

-- Removes slots that have been without effect for that long.
create function afl.forget_rates_v1(p_older_than interval) returns void language plpgsql as $$
declare
    r record;
begin
    for r in
        select n.facet, n.key from afl.rate n where n.ends_at <= afl.now() - p_older_than
        for update skip locked
    loop
        delete from afl.rate_slot s where s.facet = r.facet and s.key = r.key;
        delete from afl.rate n where n.facet = r.facet and n.key = r.key;
    end loop;
end $$;
