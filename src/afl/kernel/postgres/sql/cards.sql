-- name: put_cards
-- Keeps cards, in one order for everybody.
insert into afl.card (hash, kind, content)
select distinct on (x.hash) x.hash, x.kind, x.content
from unnest(%(hashes)s::text[], %(kinds)s::text[], %(contents)s::json[]) as x(hash, kind, content)
order by x.hash
on conflict do nothing

-- name: get_cards
-- Cards in the order of the hashes; one that is not there has no hash.
select x.hash, k.hash, k.kind, k.content
from unnest(%(hashes)s::text[]) with ordinality as x(hash, n)
left join afl.card k on k.hash = x.hash order by x.n

-- name: lock_box
-- Lets one at a time append to a box.
select pg_advisory_xact_lock(hashtextextended('afl box ' || %(box)s::text, 0))

-- name: look_at_box
-- How long a box is, and which cards stand between two places.
select coalesce((select b.seq + 1 from afl.box_card b where b.box = %(box)s
                 order by b.seq desc limit 1), 0),
       array(select b.card from afl.box_card b
             where b.box = %(box)s and b.seq >= %(at)s and b.seq < %(end)s order by b.seq)

-- name: is_task
-- Whether there is such a task.
select exists (select from afl.task t where t.id = %(task)s::uuid)

-- name: append_box
-- Appends cards to a box.
insert into afl.box_card (box, seq, card)
select %(box)s, %(at)s + x.n - 1, x.hash
from unnest(%(hashes)s::text[]) with ordinality as x(hash, n)

-- name: read_box
-- The cards of a box from a place on.
select k.hash, k.kind, k.content from afl.box_card b join afl.card k on k.hash = b.card
where b.box = %(box)s and b.seq >= %(start)s order by b.seq
