-- name: note_superseded
-- Keeps results that came too late, of runs that are still known.
insert into afl.superseded_result (run, path, worker, status, body)
select n.run::uuid, n.path, n.worker, n.status, n.body::json
from unnest(%(run)s::text[], %(path)s::text[], %(worker)s::text[], %(status)s::text[],
            %(body)s::text[]) with ordinality as n (run, path, worker, status, body, number)
where exists (select from afl.run r where r.id = n.run::uuid)
order by n.number

-- name: get_superseded
-- Results of a run that came too late, in the order in which they came.
select r.path, r.worker, r.status, r.body, r.noted_at from afl.superseded_result r
where r.run = %(run)s::uuid order by r.seq limit %(limit)s
