-- name: save_sources
-- Keeps the files of a program in place of those that were kept for it.
with gone as (
    delete from afl.program_source s where s.program = %(program)s and s.name <> all (%(names)s)
)
insert into afl.program_source as s (program, name, text)
select p.hash, n.name, n.text
from afl.program p, unnest(%(names)s::text[], %(texts)s::text[]) as n (name, text)
where p.hash = %(program)s
on conflict (program, name) do update set text = excluded.text where s.text <> excluded.text

-- name: get_sources
-- The files of a program.
select s.name, s.text from afl.program_source s where s.program = %(program)s order by s.name

-- name: deployment_history
-- The programs that were deployed under a name, the newest first.
select v.program, v.deployed_at from afl.deployment_version v
where v.name = %(name)s order by v.number desc limit %(limit)s
