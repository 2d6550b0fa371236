-- name: listen_wishes
-- From now on, hear in which turns somebody wants to hear the model.
listen afl_feed_wishes

-- name: tell_wishes
-- Say in which turns somebody here wants to hear the model. It is not worth waiting for a disk; that
-- is set for this transaction alone, since a pooler may give the session to somebody else.
select set_config('synchronous_commit', 'off', true), pg_notify('afl_feed_wishes', %(payload)s::text)

-- name: listen_chunks
-- From now on, hear what models say in those turns.
listen afl_feed_chunks

-- name: tell_chunks
-- Say what models have said since, in the same way.
select set_config('synchronous_commit', 'off', true), pg_notify('afl_feed_chunks', %(payload)s::text)
