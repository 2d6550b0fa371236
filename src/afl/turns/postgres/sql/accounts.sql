-- name: record_usage
-- Writes one request down, unless it is there.
insert into afl.usage (
    task, number, run, tenant, agent, facet, step, model, input, output, cache_read, cache_write,
    usd, price_version, tool_calls, started_at, ended_at)
values (
    %(task)s::uuid, %(number)s::int, %(run)s::text, %(tenant)s::text, %(agent)s::text,
    %(facet)s::text, %(step)s::text, %(model)s::text, %(input)s::bigint, %(output)s::bigint,
    %(cache_read)s::bigint, %(cache_write)s::bigint, %(usd)s::numeric, %(price_version)s::text,
    %(tool_calls)s::int, %(started_at)s::timestamptz, %(ended_at)s::timestamptz)
on conflict (task, number) do nothing

-- name: usage_tenants
-- The tenants that have asked models, from one to the next.
with recursive known as (
    (select u.tenant from afl.usage u order by u.tenant limit 1)
    union all
    select (select u.tenant from afl.usage u where u.tenant > k.tenant order by u.tenant limit 1)
    from known k where k.tenant is not null)
select k.tenant from known k where k.tenant is not null

-- name: usage
-- Requests of tenants added up, the most expensive first: of a run, of turns, or since a time.
select s.key, s.requests, s.input, s.output, s.cache_read, s.cache_write, s.usd, s.unpriced
from (
    select k.key, count(*) as requests, sum(u.input)::bigint as input,
           sum(u.output)::bigint as output, sum(u.cache_read)::bigint as cache_read,
           sum(u.cache_write)::bigint as cache_write,
           coalesce(sum(u.usd) filter (where u.price_version <> %(unpriced)s::text), 0) as usd,
           count(*) filter (where u.price_version = %(unpriced)s::text) as unpriced
    from afl.usage u
    cross join lateral (
        select coalesce(
            case %(by)s::text
                when 'run' then u.run
                when 'agent' then u.agent
                when 'facet' then u.facet
                when 'step' then u.step
                when 'model' then u.model
                when 'task' then u.task::text
                when 'day' then to_char(u.ended_at at time zone 'UTC', 'YYYY-MM-DD')
            end, '') collate "C" as key
    ) as k
    where u.tenant = any(%(tenants)s::text[])
      and (%(run)s::text is null or u.run = %(run)s::text)
      and (%(tasks)s::uuid[] is null or u.task = any(%(tasks)s::uuid[]))
      and (%(runs)s::text[] is null or u.run = any(%(runs)s::text[]))
      and (%(since)s::timestamptz is null or u.ended_at >= %(since)s::timestamptz)
    group by k.key
) as s
order by s.usd desc, s.input + s.output desc, s.key limit %(limit)s::int
