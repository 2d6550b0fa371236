-- name: enqueue
-- Makes tasks, or finds those that have the idem.
select r.known, {task}
from afl.enqueue_v1(
    %(specs)s::json, %(inputs)s::json[], %(ids)s::uuid[], %(tenants)s::text[], %(lanes)s::text[],
    %(idems)s::text[]) as r, lateral (select (r.t).*) as t

-- name: claim
-- Takes ready tasks, each with the answers that it has not taken.
select r.replies, {task}
from afl.claim_v1(
    %(worker)s::text, %(names)s::text[], %(lists)s::text[], %(n)s::int, %(token)s::text) as r,
    lateral (select (r.t).*) as t

-- name: renew
-- Moves a worker's expiry and tells it what it has lost.
select r.expires_at, r.lost, r.stop from afl.renew_v1(%(worker)s::text, %(held)s::bigint[]) as r

-- name: commit
-- One step of work for each fence, all of them or nothing.
select r.at, r.repeated, r.eager, r.calls, r.replies, {task}
from afl.commit_v1(
    %(fences)s::bigint[], %(numbers)s::int[], %(thens)s::text[], %(outcomes)s::text[],
    %(results)s::json[], %(errors)s::json[], %(permanents)s::boolean[], %(cards)s::int[],
    %(card_at)s::int[], %(card_hashes)s::text[], %(card_kinds)s::text[],
    %(card_contents)s::json[], %(applied_at)s::int[], %(applied)s::uuid[],
    %(calls)s::json, %(inputs)s::json[], %(call_at)s::int[], %(call_ids)s::uuid[],
    %(call_keys)s::text[], %(call_lanes)s::text[], %(call_tenants)s::text[],
    %(worker)s::text, %(names)s::text[], %(lists)s::text[], %(n)s::int, %(token)s::text) as r,
    lateral (select (r.t).*) as t

-- name: reply
-- Answers a call, unless it has an answer.
select afl.reply_v1(%(call)s::uuid, %(status)s::text, %(reply)s::json)

-- name: stop
-- Closes a task as canceled, or asks its worker to stop.
select afl.stop_v1(%(task)s::uuid, %(force)s::boolean, %(error)s::json)
