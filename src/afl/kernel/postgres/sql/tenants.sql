-- name: find_tenant_role
-- The role that PostgreSQL shows the rows of one tenant alone, if there is one that we may be.
select r.rolname
from pg_policy p join pg_roles r on r.oid = any(p.polroles)
where p.polrelid = to_regclass('afl.task') and p.polname = 'tenant'
  and pg_has_role(r.oid, case when current_setting('server_version_num')::int < 160000
                              then 'member' else 'set' end)

-- name: be_tenant
-- Is that role for a tenant, until the end of the transaction.
select set_config('role', %(role)s::text, true), set_config('afl.tenant', %(tenant)s::text, true)
