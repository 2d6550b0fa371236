insert into bare.task (input)
select '{"n": 42, "path": "in/part-0001"}' from generate_series(1, :batch);
with first as (
    select id from bare.task
    where list = 'default' and name = 'billing.Pay' and state = 'ready'
    order by priority desc, id limit :batch for update skip locked
), taken as (
    update bare.task t
    set state = 'running', attempts = t.attempts + 1, worker = 'w1', changed_at = now()
    from first where t.id = first.id
    returning t.id, t.input
)
select coalesce(array_agg(id), '{}')::text as tasks, coalesce(string_agg(input::text, ''), '') as inputs
from taken \gset
update bare.task set state = 'closed', result = '{"ok": true}', changed_at = now()
where id = any(:tasks::bigint[]) and state = 'running' and worker = 'w1';
