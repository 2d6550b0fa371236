-- name: save_agent
-- Puts an agent on the roster, or describes it anew.
insert into afl.agent as a (
    tenant, id, kind, target, system, models, tools, tags, limits, max_tokens, temperature,
    created_at)
values (
    %(tenant)s, %(id)s, %(kind)s, %(target)s, %(system)s, %(models)s, %(tools)s, %(tags)s,
    %(limits)s::json, %(max_tokens)s, %(temperature)s, afl.now())
on conflict (tenant, id) do update set
    kind = excluded.kind,
    target = excluded.target,
    system = excluded.system,
    models = excluded.models,
    tools = excluded.tools,
    tags = excluded.tags,
    limits = excluded.limits,
    max_tokens = excluded.max_tokens,
    temperature = excluded.temperature
returning {agent}

-- name: get_agent
-- One agent.
select {agent} from afl.agent a where a.tenant = %(tenant)s and a.id = %(id)s

-- name: list_agents
-- Agents of a tenant in the order of their ids, from after one.
select {agent} from afl.agent a
where a.tenant = %(tenant)s and a.id > %(after)s
order by a.id limit %(limit)s

-- name: delete_agent
-- Takes an agent off the roster.
delete from afl.agent a where a.tenant = %(tenant)s and a.id = %(id)s returning a.id
