"""The conditions of a search for runs, as SQL for runs aliased `r`.

Which of them hold is decided by the parameters: one that is null asks for nothing. The server plans
each search anew, with its parameters, so what asks for nothing costs nothing.
"""

from __future__ import annotations

#: Everything but texts: what indexes can serve.
WANTED = """(
    (%(before)s::uuid is null or r.id < %(before)s::uuid)
    and (%(first)s::uuid is null or r.id >= %(first)s::uuid)
    and (%(last)s::uuid is null or r.id <= %(last)s::uuid)
    and (%(since)s::timestamptz is null or r.created_at >= %(since)s::timestamptz)
    and (%(until)s::timestamptz is null or r.created_at < %(until)s::timestamptz)
    and (%(state)s::text is null or r.state = %(state)s::text)
    and (%(paused)s::boolean is not false or not r.pause_requested)
    and (%(paused)s::boolean is not true
         or ((r.pause_requested or r.state = 'paused') and r.finished_at is null))
    and (%(workflow)s::text is null or r.workflow = %(workflow)s::text)
    and (%(labels)s::jsonb is null or (r.labels @> %(labels)s::jsonb and r.labels <> '{}'))
    and (%(tenant)s::text is null or r.tenant = %(tenant)s::text)
    and (%(parent)s::uuid is null or r.parent = %(parent)s::uuid)
    and (not %(top_only)s::boolean or r.parent is null)
)"""

_TEXT = "lower(%(text)s::text)"


def _has_text(value: str) -> str:
    """Whether a column has the text, in small letters or capitals. Most texts are plain letters,
    for which the quick way to make them small is enough: the other takes most of a search."""
    return f"""(
        position({_TEXT} in lower({value} collate "C")) > 0
        or (octet_length({value}) > char_length({value})
            and position({_TEXT} in lower({value})) > 0))"""


#: Workflows are few, so their names are found one by one in the index.
_WORKFLOWS = """recursive workflow (name) as (
        (select r.workflow from afl.run r order by r.workflow limit 1)
        union all
        select (select r.workflow from afl.run r where r.workflow > w.name
                order by r.workflow limit 1)
        from workflow w where w.name is not null
    )"""
#: The ids of runs with a text in their id or workflow, all of them.
NAMED = f"""(
    with {_WORKFLOWS}
    (select r.id from afl.run r
     where r.id between %(first_id)s::uuid and %(last_id)s::uuid and {WANTED}
     order by r.id desc limit %(limit)s)
    union
    (select r.id from workflow w
     cross join lateral (
         select r.id from afl.run r where r.workflow = w.name and {WANTED}
         order by r.id desc limit %(limit)s
     ) as r
     where position({_TEXT} in lower(w.name)) > 0)
)"""
#: How many runs each workflow with a text in its name has; and how many others there are with it in
#: their id, or that have been found. Each up to a limit.
NAMED_COUNTS = f"""(
    with {_WORKFLOWS}
    select (select count(*) from (
                select from afl.run r where r.workflow = w.name and {WANTED} limit %(limit)s
            ) as r) as runs
    from workflow w where position({_TEXT} in lower(w.name)) > 0
    union all
    select count(*) from (
        (select r.id from afl.run r
         where r.id between %(first_id)s::uuid and %(last_id)s::uuid
           and position({_TEXT} in lower(r.workflow)) = 0 and {WANTED}
         limit %(limit)s)
        union
        select r.id from afl.run r
        where r.id = any(%(found)s::uuid[])
          and position({_TEXT} in lower(r.workflow)) = 0 and {WANTED}
    ) as r
)"""
#: The ids of runs with a text as their key, or in their key or error: for the latter so many of the
#: newest runs are looked at that have one. Those that have completed have no error.
LOOKED_FOR = f"""(
    (select r.id from afl.run r
     where lower(r.key) = {_TEXT} and r.key is not null and {WANTED}
     limit %(limit)s)
    union
    (select r.id from (
         select r.id, r.key from afl.run r where r.key is not null and {WANTED}
         order by r.id desc limit %(among)s
     ) as r
     where {_has_text("r.key")} limit %(limit)s)
    union
    (select r.id from (
         select r.id, r.error ->> 'message' as message from afl.run r
         where r.error is not null and %(state)s::text is distinct from 'completed' and {WANTED}
         order by r.id desc limit %(among)s
     ) as r
     where {_has_text("r.message")} limit %(limit)s)
)"""
