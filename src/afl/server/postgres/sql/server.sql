-- name: add_token
-- Adds a token, unless its name is taken.
insert into afl.server_token (id, name, role, tenant, digest, created_at, expires_at)
values (%(id)s, %(name)s, %(role)s, %(tenant)s, %(digest)s, %(created_at)s, %(expires_at)s)
on conflict (name) do nothing
returning id

-- name: find_token
-- The token with a digest.
select id, name, role, tenant, digest, created_at, expires_at, last_used_at
from afl.server_token where digest = %(digest)s

-- name: tokens
-- All tokens, the first first.
select id, name, role, tenant, digest, created_at, expires_at, last_used_at
from afl.server_token order by created_at, id

-- name: revoke_token
-- Removes a token.
delete from afl.server_token where id = %(id)s returning id

-- name: note_use
-- Notes when a token was last used, once a minute.
update afl.server_token set last_used_at = %(at)s
where id = %(id)s and (last_used_at is null or last_used_at <= %(at)s - interval '1 minute')
returning id

-- name: begin_audit
-- Writes what is about to be done.
insert into afl.server_audit (at, subject, role, tenant, action, target, status, detail)
values (coalesce(%(at)s::timestamptz, afl.now()), %(subject)s, %(role)s, %(tenant)s, %(action)s,
        %(target)s, %(status)s, %(detail)s)
returning id

-- name: end_audit
-- Notes how it ended.
update afl.server_audit set status = %(status)s, detail = detail || %(detail)s::jsonb
where id = %(id)s
returning id

-- name: audit
-- What was done, the newest first.
select subject, role, tenant, action, target, status, detail, at, id
from afl.server_audit
where (%(tenant)s::text is null or tenant = %(tenant)s)
  and (%(before)s::bigint is null or id < %(before)s)
order by id desc limit %(limit)s

-- name: rotate_audit
-- Removes entries that are that old, of the oldest so many.
with oldest as (
    select a.id, a.at from afl.server_audit a order by a.id limit %(limit)s::int)
delete from afl.server_audit a using oldest o
where a.id = o.id and o.at < afl.now() - %(older_than)s::interval
returning a.id

-- name: save_view
-- Writes a view, new or changed.
insert into afl.server_view (id, name, page, query, shared, owner, tenant)
values (%(id)s, %(name)s, %(page)s, %(query)s, %(shared)s, %(owner)s, %(tenant)s)
on conflict (id) do update set name = excluded.name, page = excluded.page, query = excluded.query,
    shared = excluded.shared
returning id

-- name: views
-- The views of somebody, and those that others of the tenant share.
select id, name, page, query, shared, owner, tenant
from afl.server_view where tenant = %(tenant)s and (owner = %(owner)s or shared)
order by name, id

-- name: delete_view
-- Removes a view of its owner.
delete from afl.server_view where id = %(id)s and owner = %(owner)s returning id

-- name: add_hook
-- Adds a web hook, unless its name is taken.
insert into afl.server_hook (name, workflow, program, secret)
values (%(name)s, %(workflow)s, %(program)s, %(secret)s)
on conflict (name) do nothing
returning name

-- name: hook
-- One web hook.
select name, workflow, program, secret from afl.server_hook where name = %(name)s

-- name: hooks
-- All web hooks.
select name, workflow, program, secret from afl.server_hook order by name

-- name: delete_hook
-- Removes a web hook.
delete from afl.server_hook where name = %(name)s returning name

-- name: put_job
-- Writes a job, new or changed. Whoever is at it stays so until it ends.
insert into afl.server_job (
    id, verb, form, by, tenant, state, total, done, failures, created_at, finished_at, cursor)
values (%(id)s, %(verb)s, %(form)s, %(by)s, %(tenant)s, %(state)s, %(total)s, %(done)s,
        %(failures)s, %(created_at)s, %(finished_at)s, %(cursor)s)
on conflict (id) do update set state = excluded.state, total = excluded.total,
    done = excluded.done, failures = excluded.failures, finished_at = excluded.finished_at,
    cursor = excluded.cursor
returning id

-- name: job
-- One job.
select id, verb, form, by, tenant, state, total, done, failures, created_at, finished_at, cursor
from afl.server_job where id = %(id)s

-- name: jobs
-- Jobs, the newest first: ids are in the order of time.
select id, verb, form, by, tenant, state, total, done, failures, created_at, finished_at, cursor
from afl.server_job where %(before)s::text is null or id < %(before)s
order by id desc limit %(limit)s

-- name: take_job
-- A running job that no live server is at.
update afl.server_job
set taken_by = %(by)s, taken_until = afl.now() + %(seconds)s * interval '1 second'
where id = (
    select id from afl.server_job
    where state = 'running' and (taken_until is null or taken_until <= afl.now())
    order by id limit 1 for update skip locked
)
returning id, verb, form, by, tenant, state, total, done, failures, created_at, finished_at, cursor

-- name: renew_job
-- Keeps a running job for longer.
update afl.server_job set taken_until = afl.now() + %(seconds)s * interval '1 second'
where id = %(id)s and state = 'running' and taken_by = %(by)s
returning id

-- name: recall
-- The answer to a request, for a day.
select answer from afl.server_answer
where key = %(key)s and kept_at > afl.now() - interval '1 day'

-- name: forget_answers
-- Forgets answers after their day.
delete from afl.server_answer where kept_at <= afl.now() - interval '1 day' returning 1

-- name: remember
-- Keeps an answer, unless there is one.
insert into afl.server_answer (key, answer, kept_at) values (%(key)s, %(answer)s, afl.now())
on conflict (key) do nothing
returning 1

-- name: make_secret
-- Makes the key of this installation, unless there is one.
insert into afl.server_secret (key) values (%(key)s) on conflict (one) do nothing returning 1

-- name: secret
-- The key of this installation.
select key from afl.server_secret

-- name: wall
-- The role for reads of one tenant, whether every table is walled for it, whether we may be it, and
-- who we are.
select w.role,
       not exists (
           select from afl.tenant_sees_v1() s
           where s.condition is not null and not exists (
               select from pg_policy p join pg_roles r on r.oid = any(p.polroles)
               where p.polrelid = to_regclass('afl.' || s.name) and p.polname = 'tenant'
                 and r.rolname = w.role)),
       exists (
           select from pg_roles r
           where r.rolname = w.role
             and pg_has_role(r.oid, case when current_setting('server_version_num')::int < 160000
                                         then 'member' else 'set' end)),
       current_user::text
from (select afl.tenant_role_v1() as role) as w
