-- name: save_program
-- Keeps a program. One that is known may have other lines and comments now.
insert into afl.program as p (hash, text, saved_at) values (%(hash)s, %(text)s, afl.now())
on conflict (hash) do update set text = excluded.text where p.text <> excluded.text

-- name: get_program
-- One program.
select p.text from afl.program p where p.hash = %(hash)s

-- name: deploy
-- Makes a known program the current one under a name, and notes it if it was not.
with before as (
    select d.program from afl.deployment d where d.name = %(name)s
), made as (
    insert into afl.deployment as d (name, program, deployed_at)
    select %(name)s, p.hash, afl.now() from afl.program p where p.hash = %(program)s
    on conflict (name) do update set program = excluded.program, deployed_at = excluded.deployed_at
    returning d.name, d.program, d.deployed_at
), noted as (
    insert into afl.deployment_version (name, program, deployed_at)
    select m.name, m.program, m.deployed_at from made m
    where not exists (select from before b where b.program = m.program)
)
select m.name from made m

-- name: deployed
-- The current program under a name.
select d.program from afl.deployment d where d.name = %(name)s

-- name: deployments
-- All current programs.
select d.name, d.program from afl.deployment d order by d.name collate "C"

-- name: newest_programs
-- The programs that were saved last.
select p.hash from afl.program p order by p.saved_at desc, p.hash limit %(limit)s
