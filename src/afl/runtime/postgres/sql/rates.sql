-- name: reserve_slots
-- Takes the next slots of a facet and a key.
select afl.reserve_slots_v1(
    %(facet)s, %(key)s, %(max)s::int, %(per)s::interval, %(count)s::int)

-- name: forget_rates
-- Removes slots that have long been without effect.
select afl.forget_rates_v1(%(older_than)s::interval)
