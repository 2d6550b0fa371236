-- The runs that nobody called, by state: what the list in the browser counts first, for one tenant
-- or for all.
create index run_top_by_state on afl.run (state, id) include (tenant) where parent is null;
