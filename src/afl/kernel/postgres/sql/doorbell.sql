-- name: listen
-- From now on, hear the rings of others.
listen afl_doorbell

-- name: notify
-- Ring; the payload says for which lists.
select pg_notify('afl_doorbell', %(lists)s)
