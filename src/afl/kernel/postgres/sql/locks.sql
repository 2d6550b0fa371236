-- name: acquire_lock
-- Takes a lock that is free, expired, or held under the same token.
insert into afl.user_lock as l (key, token, expires_at, meta)
values (%(key)s, %(token)s, afl.now() + %(duration)s::interval, %(meta)s::json)
on conflict (key) do update set
    token = excluded.token, expires_at = excluded.expires_at, meta = excluded.meta
where l.token = excluded.token or l.expires_at <= afl.now()
returning l.key, l.token, l.expires_at, l.meta

-- name: extend_lock
-- Holds a lock longer.
update afl.user_lock l set expires_at = afl.now() + %(duration)s::interval
where l.key = %(key)s and l.token = %(token)s and l.expires_at > afl.now()
returning l.key

-- name: release_lock
-- Gives a lock back.
delete from afl.user_lock l
where l.key = %(key)s and l.token = %(token)s and l.expires_at > afl.now()
returning l.key

-- name: get_lock
-- Who holds a lock.
select l.key, l.token, l.expires_at, l.meta from afl.user_lock l
where l.key = %(key)s and l.expires_at > afl.now()
