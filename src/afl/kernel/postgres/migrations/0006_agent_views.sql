-- Agents as their operators know them: heads, inboxes, awaited tools and edges, read from the same
-- rows. An agent is a lane that turns run in; its id is the lane's name, its project the tenant.

create schema if not exists state;

-- One row per agent: what its active turn is doing. turn_epoch is the last fence of the lane.
create view state.agent_state_head as
with agent as (
    select t.tenant, t.lane, max(t.last_fence) as last_fence, max(t.created_at) as created_at,
           max(t.closed_at) as closed_at
    from afl.task t where t.kind = 'turn' and t.lane is not null
    group by t.tenant, t.lane
)
select a.tenant                                                      as project_id,
       a.lane                                                        as agent_id,
       case t.state when 'ready' then 'dispatched' when 'running' then 'running'
                    when 'waiting' then 'suspended' else 'idle' end  as status,
       t.id                                                          as active_agent_turn_id,
       t.run                                                         as active_channel_id,
       coalesce(a.last_fence, 0)                                     as turn_epoch,
       coalesce(t.depth, 0)                                          as active_recursion_depth,
       t.parent_call                                                 as parent_step_id,
       t.trace                                                       as trace_id,
       null::uuid                                                    as profile_box_id,
       null::uuid                                                    as context_box_id,
       t.id                                                          as output_box_id,
       null::text                                                    as expecting_correlation_id,
       coalesce(w.open, 0)::int                                      as waiting_tool_count,
       w.deadline                                                    as resume_deadline,
       coalesce(t.reason_since, greatest(a.closed_at, a.created_at)) as updated_at
from agent a
left join afl.lane l on l.tenant = a.tenant and l.name = a.lane
left join afl.task t on t.id = l.active and t.kind = 'turn'
left join lateral (
    select count(*) as open, min(c.deadline) as deadline from afl.call c
    where c.caller = t.id and c.status = 'open'
) as w on t.state = 'waiting';

-- What was sent to agents: turns, and the answers to what a turn has called.
create view state.agent_inbox as
select t.id                                as inbox_id,
       t.tenant                            as project_id,
       t.lane                              as agent_id,
       t.run                               as channel_id,
       'turn'                              as message_type,
       'call'                              as enqueue_mode,
       coalesce(t.idem, t.id::text)        as correlation_id,
       t.id                                as agent_turn_id,
       coalesce(t.last_fence, 0)           as turn_epoch,
       json_build_object('traceparent', t.trace, 'CG-Recursion-Depth', t.depth)
                                           as context_headers,
       t.input                             as payload,
       case when t.state = 'closed' and t.last_fence is null then 'skipped'
            when t.state = 'closed' and t.outcome in ('failed', 'timeout') then 'error'
            when t.state = 'closed' then 'consumed'
            when t.state = 'queued' and t.committed_fence is null then 'queued'
            when t.state = 'ready' and t.run_at > afl.now() then 'deferred'
            when t.state = 'ready' and t.committed_fence is null then 'pending'
            when t.state = 'running' and t.committed_fence is null then 'processing'
            else 'consumed' end            as status,
       t.failures + t.crashes              as retry_count,
       t.run_at                            as next_retry_at,
       t.error                             as last_error,
       case when t.state = 'ready' and t.run_at > afl.now() then t.reason_code end
                                           as defer_reason,
       case when t.last_fence is not null then coalesce(t.closed_at, t.run_at) end
                                           as processed_at,
       t.closed_at                         as archived_at,
       t.created_at                        as created_at
from afl.task t
where t.kind = 'turn' and t.lane is not null
union all
select c.id, t.tenant, t.lane, c.run,
       case c.status when 'timeout' then 'timeout' else 'tool_result' end,
       'call', c.key, t.id, coalesce(t.last_fence, 0),
       json_build_object('traceparent', t.trace, 'CG-Recursion-Depth', t.depth),
       c.reply,
       case when c.applied then 'consumed' when t.state = 'closed' then 'skipped'
            when t.state = 'running' then 'processing' else 'pending' end,
       0, c.replied_at, null, null,
       case when c.applied then c.replied_at end,
       case when t.state = 'closed' then t.closed_at end,
       c.replied_at
from afl.call c join afl.task t on t.id = c.caller
where c.status <> 'open' and t.kind = 'turn' and t.lane is not null;

-- What the live turns of agents have called.
create view state.turn_waiting_tools as
select t.tenant                  as project_id,
       t.lane                    as agent_id,
       t.id                      as agent_turn_id,
       coalesce(t.last_fence, 0) as turn_epoch,
       c.key                     as tool_call_id,
       c.id                      as step_id,
       k.name                    as tool_name,
       case when c.status = 'open' then 'waiting'
            when c.applied then 'applied'
            when c.status = 'timeout' then 'expired'
            when c.status = 'canceled' then 'dropped'
            else 'received' end  as wait_status,
       null::uuid                as tool_result_card_id,
       c.replied_at              as received_at,
       case when c.applied then c.replied_at end
                                 as applied_at,
       k.created_at              as created_at,
       coalesce(c.replied_at, k.created_at)
                                 as updated_at
from afl.task t
join afl.call c on c.caller = t.id
left join afl.task k on k.id = c.callee
where t.kind = 'turn' and t.lane is not null and t.state <> 'closed';

-- Who set whom to work, and who reported to whom.
create view state.execution_edges as
with call as (
    select c.*, p.tenant, p.kind as caller_kind, p.lane as caller_lane, p.trace as caller_trace,
           k.kind as callee_kind, k.name as callee_name, k.lane as callee_lane, k.depth,
           k.created_at
    from afl.call c join afl.task p on p.id = c.caller join afl.task k on k.id = c.callee
)
select 'enqueue:' || t.id                as edge_id,
       t.tenant                          as project_id,
       t.run                             as channel_id,
       'enqueue'                         as primitive,
       'request'                         as edge_phase,
       p.lane                            as source_agent_id,
       t.caller                          as source_agent_turn_id,
       t.parent_call                     as source_step_id,
       t.lane                            as target_agent_id,
       t.id                              as target_agent_turn_id,
       coalesce(t.idem, t.id::text)      as correlation_id,
       'call'                            as enqueue_mode,
       t.depth                           as recursion_depth,
       t.trace                           as trace_id,
       t.parent_call                     as parent_step_id,
       json_build_object('name', t.name) as metadata,
       t.created_at                      as created_at
from afl.task t left join afl.task p on p.id = t.caller
where t.kind = 'turn'
union all
select 'tool_call:' || c.id, c.tenant, c.run, 'tool_call', 'request', c.caller_lane, c.caller, c.id,
       c.callee_lane, c.callee, c.key, 'call', c.depth, c.caller_trace, c.id,
       json_build_object('name', c.callee_name), c.created_at
from call c where c.callee_kind not in ('turn', 'join')
union all
select 'report:' || c.id, c.tenant, c.run, 'report', 'response', c.callee_lane, c.callee, c.id,
       c.caller_lane, c.caller, c.key, 'call', c.depth, c.caller_trace, c.id,
       json_build_object('name', c.callee_name, 'status', c.status), c.replied_at
from call c where c.status <> 'open' and c.callee_kind <> 'join'
union all
select 'join:' || c.id, c.tenant, c.run, 'join', 'request', c.caller_lane, c.caller, c.id,
       c.callee_lane, c.callee, c.key, 'call', c.depth, c.caller_trace, c.id,
       json_build_object('name', c.callee_name), c.created_at
from call c where c.callee_kind = 'join'
union all
select 'join:' || c.id || ':done', c.tenant, c.run, 'join', 'response', c.callee_lane, c.callee,
       c.id, c.caller_lane, c.caller, c.key, 'call', c.depth, c.caller_trace, c.id,
       json_build_object('name', c.callee_name, 'status', c.status), c.replied_at
from call c where c.callee_kind = 'join' and c.status <> 'open';
