-- name: write_changes
-- Writes steps, waits, log lines and awaited events of any number of runs.
select afl.write_changes_v2(
    %(runs)s::uuid[], %(paths)s::text[], %(types)s::text[], %(statements)s::text[],
    %(facets)s::text[], %(states)s::text[], %(params)s::json[], %(returns)s::json[],
    %(errors)s::json[], %(because)s::text[], %(yields_to)s::text[], %(frames)s::json[],
    %(wait_runs)s::uuid[], %(wait_on)s::text[], %(wait_blocks)s::text[],
    %(log_runs)s::uuid[], %(log_paths)s::text[], %(log_lines)s::json[],
    %(await_runs)s::uuid[], %(await_calls)s::text[], %(await_names)s::text[],
    %(await_keys)s::text[], %(distinct)s::boolean)

-- name: load
-- Steps by path, yields by who takes them, and who waits for a step.
select 'step', null, null, {step} from afl.step s
where s.run = %(run)s::uuid and s.path = any(%(steps)s::text[])
union all
select 'yield', null, null, {step} from afl.step s
where s.run = %(run)s::uuid and s.yields_to = any(%(yields)s::text[]) and s.yields_to is not null
union all
select 'wait', w.on_path, w.block, {no_step} from afl.step_wait w
where w.run = %(run)s::uuid and w.on_path = any(%(waits)s::text[])

-- name: load_steps
-- Steps by path.
select {step} from afl.step s where s.run = %(run)s::uuid and s.path = any(%(steps)s::text[])

-- name: steps_of
-- Steps of a run in the order of their paths.
select {step} from afl.step s
where s.run = %(run)s::uuid
order by s.path limit %(limit)s

-- name: steps_after
-- Steps of a run in the order of their paths, from after one.
select {step} from afl.step s
where s.run = %(run)s::uuid and s.path > %(after)s
order by s.path limit %(limit)s

-- name: steps_in_state
-- Steps of a run that are in a state.
select {step} from afl.step s
where s.run = %(run)s::uuid and s.state = %(state)s
order by s.path limit %(limit)s

-- name: count_steps
-- How many steps of a run are in which state.
select s.state, count(*) from afl.step s where s.run = %(run)s::uuid group by s.state

-- name: get_logs
-- Log lines of a run, the first first.
select l.path, l.line, l.at from afl.step_log l
where l.run = %(run)s::uuid order by l.number limit %(limit)s

-- name: unended_steps
-- Steps whose paths lie in a stretch and that have not ended.
select {step} from afl.step s
where s.run = %(run)s::uuid and s.path >= %(first)s and s.path < %(end)s
  and s.state not in ('state.statement.Complete', 'state.statement.Error',
                      'state.statement.Skipped')
order by s.path
