-- name: put_cards
-- Keeps cards, in one order for everybody.
insert into afl.card (hash, kind, content)
select distinct on (x.hash) afl.hash_bytes(x.hash), x.kind, x.content
from unnest(%(hashes)s::text[], %(kinds)s::text[], %(contents)s::json[]) as x(hash, kind, content)
order by x.hash
on conflict do nothing

-- name: get_cards
-- Cards in the order of the hashes; one that is not there has no hash.
select x.hash, case when k.hash is not null then x.hash end, k.kind, k.content
from unnest(%(hashes)s::text[]) with ordinality as x(hash, n)
left join afl.card k on k.hash = afl.hash_bytes(x.hash) order by x.n

-- name: lock_box
-- Lets one at a time append to a box.
select pg_advisory_xact_lock(hashtextextended('afl box ' || %(box)s::text, 0))

-- name: look_at_box
-- How long a box is, and which cards stand between two places.
select coalesce((select b.seq + length(b.cards) / 32 from afl.box_card b where b.box = %(box)s
                 order by b.seq desc limit 1), 0),
       array(select afl.hash_text(substr(b.cards, i * 32 + 1, 32))
             from afl.box_card b, generate_series(0, length(b.cards) / 32 - 1) as i
             where b.box = %(box)s and b.seq < %(end)s
               and b.seq + i >= %(at)s and b.seq + i < %(end)s
             order by b.seq, i)

-- name: is_task
-- Whether there is such a task.
select exists (select from afl.task t where t.id = %(task)s::uuid)

-- name: append_box
-- Appends cards to a box.
insert into afl.box_card (box, seq, cards)
select %(box)s, %(at)s, x.cards from (
    select string_agg(afl.hash_bytes(x.hash), null order by x.n) as cards
    from unnest(%(hashes)s::text[]) with ordinality as x(hash, n)) as x
where x.cards is not null

-- name: read_box
-- The cards of a box from a place on.
select afl.hash_text(k.hash), k.kind, k.content
from afl.box_card b, generate_series(0, length(b.cards) / 32 - 1) as i, afl.card k
where b.box = %(box)s and b.seq + length(b.cards) / 32 > %(start)s and b.seq + i >= %(start)s
  and k.hash = substr(b.cards, i * 32 + 1, 32)
order by b.seq, i

-- name: keep_answer
-- Lets a card stand for an answer.
select afl.keep_answer_v1(%(call)s::uuid, %(card)s::text)
