-- name: await_budget
-- Notes that a turn waits for room. Whoever was told that there is some, and found none, has not
-- lost its place.
insert into afl.budget_wait as w (
    task, call_key, tenants, scopes, keys, usd, tokens, model_calls, tool_calls)
values (
    %(task)s::uuid, %(call_key)s::text, %(tenants)s::text[], %(scopes)s::text[], %(keys)s::text[],
    %(usd)s::numeric, %(tokens)s::bigint, %(model_calls)s::bigint, %(tool_calls)s::bigint)
on conflict (task) do update set
    call_key = excluded.call_key,
    tenants = excluded.tenants,
    scopes = excluded.scopes,
    keys = excluded.keys,
    usd = excluded.usd,
    tokens = excluded.tokens,
    model_calls = excluded.model_calls,
    tool_calls = excluded.tool_calls,
    blocked_tenant = null,
    blocked_scope = null,
    blocked_key = null,
    woken_at = null

-- name: find_waits
-- Waits that may have room: those that nobody has looked at, and behind each budget that somebody
-- waits for, from the oldest of them, those that fit it. The budgets are found by going from one to
-- the next in the index.
with recursive blocker as (
    (select w.blocked_tenant as tenant, w.blocked_scope as scope, w.blocked_key as key
     from afl.budget_wait w where w.blocked_key is not null and w.woken_at is null
     order by w.blocked_tenant, w.blocked_scope, w.blocked_key limit 1)
    union all
    select n.tenant, n.scope, n.key from blocker p
    cross join lateral (
        select w.blocked_tenant as tenant, w.blocked_scope as scope, w.blocked_key as key
        from afl.budget_wait w
        where w.blocked_key is not null and w.woken_at is null
          and (w.blocked_tenant, w.blocked_scope, w.blocked_key) > (p.tenant, p.scope, p.key)
        order by w.blocked_tenant, w.blocked_scope, w.blocked_key limit 1
    ) as n
), candidate as (
    (select w.* from afl.budget_wait w
     where w.blocked_key is null and w.woken_at is null
     order by w.number limit %(window)s::int)
    union all
    select o.* from blocker p
    join afl.budget b on b.tenant = p.tenant and b.scope = p.scope and b.key = p.key
    cross join lateral (
        select w.* from afl.budget_wait w
        where w.blocked_tenant = p.tenant and w.blocked_scope = p.scope and w.blocked_key = p.key
          and w.blocked_key is not null and w.woken_at is null
        order by w.number limit %(window)s::int
    ) as o
    where coalesce(b.spent_usd + b.reserved_usd + o.usd <= b.limit_usd, true)
      and coalesce(b.spent_tokens + b.reserved_tokens + o.tokens <= b.limit_tokens, true)
      and coalesce(b.spent_model_calls + b.reserved_model_calls + o.model_calls
                   <= b.limit_model_calls, true)
      and coalesce(b.spent_tool_calls + b.reserved_tool_calls + o.tool_calls
                   <= b.limit_tool_calls, true)
)
select {wait}, t.id is null or t.state = 'closed'
from (select c.* from candidate c order by c.number limit %(window)s::int) as w
left join afl.task t on t.id = w.task
order by w.number

-- name: promised
-- Turns that were told of room and have not taken it.
select {wait} from afl.budget_wait w where w.woken_at > afl.now() - %(promised_for)s::interval

-- name: place_waits
-- Notes what the waits are behind.
update afl.budget_wait w set
    blocked_tenant = n.tenant, blocked_scope = n.scope, blocked_key = n.key
from unnest(%(tasks)s::uuid[], %(call_keys)s::text[], %(tenants)s::text[], %(scopes)s::text[],
            %(keys)s::text[]) as n (task, call_key, tenant, scope, key)
where w.task = n.task and w.call_key = n.call_key and w.woken_at is null
  and (w.blocked_tenant, w.blocked_scope, w.blocked_key)
      is distinct from (n.tenant, n.scope, n.key)

-- name: drop_waits
-- Removes waits of turns that have ended, and promises that nobody has come for.
delete from afl.budget_wait w
where w.task = any(%(tasks)s::uuid[])
   or w.woken_at <= afl.now() - %(promised_for)s::interval

-- name: end_wait
-- Notes that a turn was told of room.
update afl.budget_wait w set woken_at = afl.now()
where w.task = %(task)s::uuid and w.call_key = %(call_key)s::text and w.woken_at is null

-- name: forget_waits
-- Removes the waits of all turns that have ended or are forgotten.
delete from afl.budget_wait w
where not exists (select from afl.task t where t.id = w.task and t.state <> 'closed')
