-- An empty queue. The finished rows are there so that the planner knows the table is not small.
truncate bare.task;
insert into bare.task (state) select 'closed' from generate_series(1, 10000);
analyze bare.task;
