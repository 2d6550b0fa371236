-- name: set_budget
-- Sets what may be spent; what was spent stays.
insert into afl.budget as b (
    tenant, scope, key, limit_usd, limit_tokens, limit_model_calls, limit_tool_calls)
values (
    %(tenant)s::text, %(scope)s::text, %(key)s::text, %(usd)s::numeric, %(tokens)s::bigint,
    %(model_calls)s::bigint, %(tool_calls)s::bigint)
on conflict (tenant, scope, key) do update set
    limit_usd = excluded.limit_usd,
    limit_tokens = excluded.limit_tokens,
    limit_model_calls = excluded.limit_model_calls,
    limit_tool_calls = excluded.limit_tool_calls
returning {budget}

-- name: budgets
-- Those of the keys that have a row, in their order.
select {budget}
from unnest(%(tenants)s::text[], %(scopes)s::text[], %(keys)s::text[]) with ordinality
    as n (tenant, scope, key, place)
join afl.budget b on b.tenant = n.tenant and b.scope = n.scope and b.key = n.key
order by n.place

-- name: list_budgets
-- Budgets of a tenant, or of all of them.
select {budget} from afl.budget b
where %(tenant)s::text is null or b.tenant = %(tenant)s::text
order by b.tenant, b.scope, b.key limit %(limit)s::int

-- name: hold_of
-- What a turn has reserved.
select h.number, h.tenant, h.scope, h.key, h.usd, h.tokens, h.model_calls, h.tool_calls
from afl.budget_hold h where h.task = %(task)s::uuid

-- name: lock_budgets
-- Locks the budgets of the keys, and those in which the turn has reserved something.
select {budget} from afl.budget b
join (
    select n.tenant, n.scope, n.key
    from unnest(%(tenants)s::text[], %(scopes)s::text[], %(keys)s::text[])
        as n (tenant, scope, key)
    union
    select h.tenant, h.scope, h.key from afl.budget_hold h where h.task = %(task)s::uuid
) as k on k.tenant = b.tenant and k.scope = b.scope and k.key = b.key
order by b.tenant, b.scope, b.key for update of b

-- name: drop_hold
-- Ends what a turn has reserved: the request of this number was not made, any other was paid for.
-- Whoever asks waits no longer. The budgets are locked.
with gone as (
    delete from afl.budget_hold h where h.task = %(task)s::uuid returning h.*
), over as (
    delete from afl.budget_wait w where w.task = %(task)s::uuid
)
update afl.budget b set
    reserved_usd = b.reserved_usd - g.usd,
    reserved_tokens = b.reserved_tokens - g.tokens,
    reserved_model_calls = b.reserved_model_calls - g.model_calls,
    reserved_tool_calls = b.reserved_tool_calls - g.tool_calls,
    spent_usd = b.spent_usd + p.paid * g.usd,
    spent_tokens = b.spent_tokens + p.paid * g.tokens,
    spent_model_calls = b.spent_model_calls + p.paid * g.model_calls,
    spent_tool_calls = b.spent_tool_calls + p.paid * g.tool_calls
from gone g
cross join lateral (select (g.number <> %(number)s::int)::int as paid) as p
where b.tenant = g.tenant and b.scope = g.scope and b.key = g.key

-- name: take_hold
-- Reserves the same in every budget of the keys. They are locked, and have room.
with taken as (
    update afl.budget b set
        reserved_usd = b.reserved_usd + %(usd)s::numeric,
        reserved_tokens = b.reserved_tokens + %(tokens)s::bigint,
        reserved_model_calls = b.reserved_model_calls + %(model_calls)s::bigint,
        reserved_tool_calls = b.reserved_tool_calls + %(tool_calls)s::bigint
    from unnest(%(tenants)s::text[], %(scopes)s::text[], %(keys)s::text[])
        as n (tenant, scope, key)
    where b.tenant = n.tenant and b.scope = n.scope and b.key = n.key
    returning b.tenant, b.scope, b.key
)
insert into afl.budget_hold (
    task, tenant, scope, key, number, usd, tokens, model_calls, tool_calls)
select %(task)s::uuid, t.tenant, t.scope, t.key, %(number)s::int, %(usd)s::numeric,
       %(tokens)s::bigint, %(model_calls)s::bigint, %(tool_calls)s::bigint
from taken t

-- name: settle
-- Turns what a request has reserved into what it has cost.
with gone as (
    delete from afl.budget_hold h
    where h.task = %(task)s::uuid and h.number = %(number)s::int
    returning h.*
), locked as (
    select g.* from gone g
    join afl.budget b on b.tenant = g.tenant and b.scope = g.scope and b.key = g.key
    order by b.tenant, b.scope, b.key for update of b
)
update afl.budget b set
    reserved_usd = b.reserved_usd - l.usd,
    reserved_tokens = b.reserved_tokens - l.tokens,
    reserved_model_calls = b.reserved_model_calls - l.model_calls,
    reserved_tool_calls = b.reserved_tool_calls - l.tool_calls,
    spent_usd = b.spent_usd + %(usd)s::numeric,
    spent_tokens = b.spent_tokens + %(tokens)s::bigint,
    spent_model_calls = b.spent_model_calls + %(model_calls)s::bigint,
    spent_tool_calls = b.spent_tool_calls + %(tool_calls)s::bigint
from locked l
where b.tenant = l.tenant and b.scope = l.scope and b.key = l.key

-- name: spend
-- Counts what was spent without a reservation.
with locked as (
    select b.tenant, b.scope, b.key
    from unnest(%(tenants)s::text[], %(scopes)s::text[], %(keys)s::text[])
        as n (tenant, scope, key)
    join afl.budget b on b.tenant = n.tenant and b.scope = n.scope and b.key = n.key
    order by b.tenant, b.scope, b.key for update of b
)
update afl.budget b set
    spent_usd = b.spent_usd + %(usd)s::numeric,
    spent_tokens = b.spent_tokens + %(tokens)s::bigint,
    spent_model_calls = b.spent_model_calls + %(model_calls)s::bigint,
    spent_tool_calls = b.spent_tool_calls + %(tool_calls)s::bigint
from locked l
where b.tenant = l.tenant and b.scope = l.scope and b.key = l.key

-- name: settle_closed
-- Counts what turns had reserved that have ended, or are forgotten, as spent; those that somebody
-- else counts are left to them. Answers of how many turns.
with closed as materialized (
    select distinct h.task from afl.budget_hold h
    left join afl.task t on t.id = h.task
    where t.id is null or t.state = 'closed'
    limit %(limit)s::int
), mine as materialized (
    select h.* from afl.budget_hold h join closed c on c.task = h.task
    order by h.task, h.tenant, h.scope, h.key for update of h skip locked
), gone as (
    delete from afl.budget_hold h using mine m
    where h.task = m.task and h.tenant = m.tenant and h.scope = m.scope and h.key = m.key
    returning h.*
), owed as materialized (
    select g.tenant, g.scope, g.key, sum(g.usd) as usd, sum(g.tokens)::bigint as tokens,
           sum(g.model_calls)::bigint as model_calls, sum(g.tool_calls)::bigint as tool_calls
    from gone g group by g.tenant, g.scope, g.key
), locked as (
    select o.* from owed o
    join afl.budget b on b.tenant = o.tenant and b.scope = o.scope and b.key = o.key
    order by b.tenant, b.scope, b.key for update of b
), paid as (
    update afl.budget b set
        reserved_usd = b.reserved_usd - l.usd,
        reserved_tokens = b.reserved_tokens - l.tokens,
        reserved_model_calls = b.reserved_model_calls - l.model_calls,
        reserved_tool_calls = b.reserved_tool_calls - l.tool_calls,
        spent_usd = b.spent_usd + l.usd,
        spent_tokens = b.spent_tokens + l.tokens,
        spent_model_calls = b.spent_model_calls + l.model_calls,
        spent_tool_calls = b.spent_tool_calls + l.tool_calls
    from locked l
    where b.tenant = l.tenant and b.scope = l.scope and b.key = l.key
)
select count(distinct g.task) from gone g
