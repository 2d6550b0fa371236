-- Results that came when somebody else had been given the work: what became of it twice.
create table afl.superseded_result (
    run uuid not null references afl.run (id) on delete cascade,
    seq bigint generated always as identity,
    path text not null,
    worker text not null,
    status text not null,
    body json,
    noted_at timestamptz not null default afl.now(),
    primary key (run, seq)
);
