-- What the server keeps for itself.

-- Of a token only a digest is kept: whoever reads this table cannot use it.
create table afl.server_token (
    id           text collate "C" primary key,
    name         text not null,
    role         text not null,
    tenant       text not null,
    digest       bytea not null,
    created_at   timestamptz not null,
    expires_at   timestamptz,
    last_used_at timestamptz,
    constraint server_token_name unique (name),
    constraint server_token_digest unique (digest),
    constraint server_token_role check (role in ('viewer', 'operator', 'developer', 'admin'))
) with (fillfactor = 70);

-- What was done, and what was refused. A row is written before the deed, with the status 0.
create table afl.server_audit (
    id      bigint generated always as identity primary key,
    at      timestamptz not null,
    subject text not null,
    role    text not null,
    tenant  text not null,
    action  text not null,
    target  text not null,
    status  integer not null,
    detail  jsonb not null
) with (fillfactor = 90);

create index server_audit_tenant on afl.server_audit (tenant, id);

-- Filters with names.
create table afl.server_view (
    id     text collate "C" primary key,
    name   text not null,
    page   text not null,
    query  text not null,
    shared boolean not null,
    owner  text not null,
    tenant text not null
);

create index server_view_tenant on afl.server_view (tenant);

-- Web hooks. Their secrets are needed in clear to check signatures.
create table afl.server_hook (
    name     text collate "C" primary key,
    workflow text not null,
    program  text not null,
    secret   text not null
);

-- Bulk actions. A running one belongs to the server `taken_by` until `taken_until`.
create table afl.server_job (
    id          text collate "C" primary key,
    verb        text not null,
    form        jsonb not null,
    by          text not null,
    tenant      text not null,
    state       text not null,
    total       integer not null,
    done        integer not null,
    failures    jsonb not null,
    created_at  timestamptz not null,
    finished_at timestamptz,
    cursor      text,
    taken_by    text,
    taken_until timestamptz,
    constraint server_job_state check (state in ('running', 'done', 'failed')),
    constraint server_job_taken check ((taken_by is null) = (taken_until is null))
) with (fillfactor = 50);

create index server_job_running on afl.server_job (id) where state = 'running';

-- Answers to requests that may be repeated.
create table afl.server_answer (
    key     text primary key,
    answer  json not null,
    kept_at timestamptz not null
);

create index server_answer_old on afl.server_answer (kept_at);

-- The key that signs links. One row.
create table afl.server_secret (
    one boolean primary key default true,
    key bytea not null,
    constraint server_secret_one check (one)
);

-- A second wall between tenants, behind the checks of the routes. What the server reads for a caller
-- of one tenant it reads as a role that PostgreSQL shows the rows of that tenant alone; the setting
-- afl.tenant names it, and without it there is nothing to see. Owners are not asked: what workers and
-- the kernel do costs what it did.

-- The id of a run that a text is; null if it is none.
create function afl.run_id_v1(p_run text) returns uuid language sql immutable as $$
    select case when p_run ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then p_run::uuid end
$$;

-- Whose a row is that works for a run: the run says it, and the row itself where there is no run. As
-- the owner, since a run that is hidden must not be taken for one that is not there.
create function afl.tenant_of_v1(p_run text, p_tenant text) returns text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    return coalesce((select r.tenant from afl.run r where r.id = afl.run_id_v1(p_run)), p_tenant);
end $$;

revoke all on function afl.tenant_of_v1(text, text) from public;

-- The role. Roles are those of the whole cluster, so it is named by who owns the tables: whoever may be
-- this role in one database may see no more by it in those of other owners.
create function afl.tenant_role_v1() returns text language sql stable as $$
    select 'afl_tenant_of_' || case when octet_length(o.name) <= 49 then o.name else md5(o.name) end
    from (select pg_get_userbyid(c.relowner)::text as name
          from pg_class c where c.oid = 'afl.task'::regclass) as o
$$;

-- What each table shows to a tenant; what is not here it cannot read at all. No condition is for what
-- belongs to no tenant.
create function afl.tenant_sees_v1() returns table (name text, condition text)
language sql immutable as $$
    values
        ('task', 'afl.tenant_of_v1(run, tenant) = $tenant'),
        ('call', 'exists (select from afl.task x where x.id = call.caller)'),
        ('lane', 'exists (select from afl.task x where x.id = lane.active)'),
        ('loss', 'exists (select from afl.task x where x.id = loss.task)'),
        ('box_card', 'exists (select from afl.task x where x.id = afl.run_id_v1(box_card.box))'),
        ('card', null),
        ('worker', null),
        ('claim_level', null),
        ('run', 'tenant = $tenant'),
        ('step', 'exists (select from afl.run x where x.id = step.run)'),
        ('step_tally', 'exists (select from afl.run x where x.id = step_tally.run)'),
        ('step_wait', 'exists (select from afl.run x where x.id = step_wait.run)'),
        ('step_log', 'exists (select from afl.run x where x.id = step_log.run)'),
        ('signal_wait', 'exists (select from afl.run x where x.id = signal_wait.run)'),
        ('superseded_result', 'exists (select from afl.run x where x.id = superseded_result.run)'),
        ('program', null),
        ('program_source', null),
        ('deployment', null),
        ('deployment_version', null),
        ('agent', 'tenant = $tenant'),
        ('budget', 'tenant = $tenant'),
        ('budget_hold', 'tenant = $tenant'),
        ('budget_wait', 'exists (select from afl.task x where x.id = budget_wait.task)'),
        ('usage', 'tenant = $tenant'),
        ('log_spool', null),
        ('log_stream', 'exists (select from afl.run x where x.id = afl.run_id_v1(log_stream.run))'),
        ('log_chunk', 'exists (select from afl.log_stream x where x.id = log_chunk.stream)'),
        ('server_token', 'tenant = $tenant'),
        ('server_audit', 'tenant = $tenant'),
        ('server_view', 'tenant = $tenant'),
        ('server_job', 'tenant = $tenant')
$$;

-- Builds the wall, or what is missing of it; false if the role is missing and may not be made here. Then
-- an administrator may call this, once.
create function afl.part_tenants_v1() returns boolean language plpgsql as $$
declare
    v_role text := afl.tenant_role_v1();
    v_owner text := (
        select pg_get_userbyid(c.relowner) from pg_class c where c.oid = 'afl.task'::regclass);
    -- who only has the rights of the role is not meant: whoever is it is
    v_apart text := format('(select current_user <> %L) or ', v_role);
    v_tenant text := '(select current_setting(''afl.tenant'', true))';
    v_seen record;
begin
    begin
        if not exists (select from pg_roles r where r.rolname = v_role) then
            begin
                execute format('create role %I nologin role %I', v_role, v_owner);
            exception when duplicate_object or unique_violation then
                null;  -- for another database, in this moment
            end;
        elsif not pg_has_role(v_owner, v_role, 'member') then
            execute format('grant %I to %I', v_role, v_owner);
        end if;
    exception when insufficient_privilege then
        return false;
    end;
    execute format('grant usage on schema afl to %I', v_role);
    execute format('grant execute on function afl.tenant_of_v1(text, text) to %I', v_role);
    for v_seen in
        select s.name, s.condition from afl.tenant_sees_v1() s
        where to_regclass('afl.' || s.name) is not null
    loop
        execute format('grant select on afl.%I to %I', v_seen.name, v_role);
        -- twice would lock tables that are in use
        continue when v_seen.condition is null or exists (
            select from pg_policy p join pg_roles r on r.oid = any(p.polroles)
            where p.polrelid = to_regclass('afl.' || v_seen.name) and p.polname = 'tenant'
              and r.rolname = v_role);
        execute format('drop policy if exists tenant on afl.%I', v_seen.name);
        execute format('drop policy if exists everybody on afl.%I', v_seen.name);
        execute format('create policy everybody on afl.%I using (true)', v_seen.name);
        execute format(
            'create policy tenant on afl.%I as restrictive for select to %I using (%s)',
            v_seen.name, v_role, v_apart || replace(v_seen.condition, '$tenant', v_tenant));
        execute format('alter table afl.%I enable row level security', v_seen.name);
    end loop;
    return true;
end $$;

select afl.part_tenants_v1();
