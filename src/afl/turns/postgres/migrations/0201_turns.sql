-- What turns keep beside the kernel's rows. Money has ten places: a token may cost less than a
-- millionth of a dollar.

-- The roster: named identities that take turns.
create table afl.agent (
    tenant      text collate "C" not null,
    id          text collate "C" not null,
    kind        text not null,
    target      text not null,
    system      text not null,
    models      text[] not null,
    tools       text[] not null,
    tags        text[] not null,
    limits      json not null,
    max_tokens  integer not null,
    temperature double precision,
    created_at  timestamptz not null,
    primary key (tenant, id),
    constraint agent_kind check (kind in ('model', 'person')),
    constraint agent_max_tokens check (max_tokens > 0)
);

-- What may be spent (null is: as much as it takes), what is reserved, what was spent. Whoever
-- changes more than one row locks them in the order of the key. A row is changed twice by every
-- request that it covers, best on one page.
create table afl.budget (
    tenant               text collate "C" not null,
    scope                text collate "C" not null,
    key                  text collate "C" not null,
    limit_usd            numeric(20, 10),
    limit_tokens         bigint,
    limit_model_calls    bigint,
    limit_tool_calls     bigint,
    reserved_usd         numeric(20, 10) not null default 0,
    reserved_tokens      bigint not null default 0,
    reserved_model_calls bigint not null default 0,
    reserved_tool_calls  bigint not null default 0,
    spent_usd            numeric(20, 10) not null default 0,
    spent_tokens         bigint not null default 0,
    spent_model_calls    bigint not null default 0,
    spent_tool_calls     bigint not null default 0,
    primary key (tenant, scope, key),
    constraint budget_scope check (scope in ('turn', 'run', 'agent', 'tenant')),
    constraint budget_limits check (
        least(limit_usd, limit_tokens, limit_model_calls, limit_tool_calls) >= 0),
    constraint budget_reserved check (
        least(reserved_usd, reserved_tokens, reserved_model_calls, reserved_tool_calls) >= 0),
    constraint budget_spent check (
        least(spent_usd, spent_tokens, spent_model_calls, spent_tool_calls) >= 0)
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.05
);

-- What a request of a turn has reserved, in each budget that covers it. A turn has one request
-- under way at most.
create table afl.budget_hold (
    task        uuid not null,
    tenant      text collate "C" not null,
    scope       text collate "C" not null,
    key         text collate "C" not null,
    number      integer not null,
    usd         numeric(20, 10) not null,
    tokens      bigint not null,
    model_calls bigint not null,
    tool_calls  bigint not null,
    primary key (task, tenant, scope, key),
    constraint budget_hold_amount check (
        number >= 0 and least(usd, tokens, model_calls, tool_calls) >= 0)
) with (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.05
);

-- Turns that wait for room, each once at most. `blocked_*` is the budget that had none when
-- somebody looked: nobody looks again before that one has some. `woken_at` is when a turn was told
-- that there is room; until it has taken it, or for a while, that room is not given to others.
create table afl.budget_wait (
    task           uuid primary key,
    call_key       text not null,
    number         bigint not null generated always as identity,
    tenants        text[] not null,
    scopes         text[] not null,
    keys           text[] not null,
    usd            numeric(20, 10) not null,
    tokens         bigint not null,
    model_calls    bigint not null,
    tool_calls     bigint not null,
    blocked_tenant text collate "C",
    blocked_scope  text collate "C",
    blocked_key    text collate "C",
    woken_at       timestamptz,
    constraint budget_wait_amount check (least(usd, tokens, model_calls, tool_calls) >= 0),
    constraint budget_wait_budgets check (
        cardinality(tenants) = cardinality(keys) and cardinality(scopes) = cardinality(keys)),
    constraint budget_wait_blocked check (
        num_nulls(blocked_tenant, blocked_scope, blocked_key) in (0, 3))
);

create index budget_wait_fresh on afl.budget_wait (number)
    where blocked_key is null and woken_at is null;
create index budget_wait_behind on afl.budget_wait (
    blocked_tenant, blocked_scope, blocked_key, number)
    where blocked_key is not null and woken_at is null;
create index budget_wait_woken on afl.budget_wait (woken_at) where woken_at is not null;

-- One row for each request to a model. The accounts outlive the runs.
create table afl.usage (
    task          uuid not null,
    number        integer not null,
    run           text not null,
    tenant        text not null,
    agent         text,
    facet         text,
    step          text,
    model         text not null,
    input         bigint not null,
    output        bigint not null,
    cache_read    bigint not null,
    cache_write   bigint not null,
    usd           numeric(20, 10) not null,
    price_version text not null,
    tool_calls    integer not null,
    started_at    timestamptz not null,
    ended_at      timestamptz not null,
    primary key (task, number),
    constraint usage_counts check (
        number >= 0 and usd >= 0
        and least(input, output, cache_read, cache_write, tool_calls) >= 0)
);

create index usage_of_run on afl.usage (run, ended_at);
create index usage_of_tenant on afl.usage (tenant, ended_at);

-- Definitions of MCP tools, as somebody has agreed to them.
create table afl.mcp_pin (
    server    text not null,
    tool      text not null,
    hash      text not null,
    pinned_at timestamptz not null,
    primary key (server, tool)
);
