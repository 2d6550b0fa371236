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
