insert into bare.task (input) values ('{"n": 42, "path": "in/part-0001"}');
with first as (
    select id from bare.task
    where list = 'default' and name = 'billing.Pay' and state = 'ready'
    order by priority desc, id limit 1 for update skip locked
), taken as (
    update bare.task t
    set state = 'running', attempts = t.attempts + 1, worker = 'w1', changed_at = now()
    from first where t.id = first.id
    returning t.id, t.input
)
select coalesce(max(id), 0) as task, coalesce(max(input::text), '') as input from taken \gset
update bare.task set state = 'closed', result = '{"ok": true}', changed_at = now()
where id = :task and state = 'running' and worker = 'w1';
