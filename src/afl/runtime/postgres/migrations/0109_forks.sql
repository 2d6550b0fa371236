-- The forks of a run, also those that have ended.
create index run_by_fork on afl.run (fork_run, id) where fork_run is not null;
