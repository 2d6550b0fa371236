-- The turns of an agent are found whatever else there is.
create index task_turns on afl.task (tenant, lane, id) where kind = 'turn' and lane is not null;
