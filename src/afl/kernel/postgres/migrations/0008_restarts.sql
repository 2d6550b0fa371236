-- Since when workers could renew: nobody can while the server is away. A test that sets the clock has
-- a server that was always there.
create function afl.up_since() returns timestamptz language sql stable as
$$ select case when coalesce(current_setting('afl.test_clock', true), '') = ''
               then pg_postmaster_start_time() else '-infinity'::timestamptz end $$;
