-- name: get_pin
-- The definition of a tool that somebody has agreed to.
select p.hash from afl.mcp_pin p where p.server = %(server)s and p.tool = %(tool)s

-- name: set_pin
-- Agrees to the definition of a tool.
insert into afl.mcp_pin (server, tool, hash, pinned_at)
values (%(server)s, %(tool)s, %(hash)s, afl.now())
on conflict (server, tool) do update set hash = excluded.hash, pinned_at = excluded.pinned_at
