-- The files that programs were made of, and which programs were deployed under each name before.
create table afl.program_source (
    program text not null references afl.program (hash) on delete cascade,
    name    text collate "C" not null,
    text    text not null,
    primary key (program, name)
);

create table afl.deployment_version (
    number      bigint generated always as identity primary key,
    name        text not null,
    program     text not null,
    deployed_at timestamptz not null
);

create index deployment_version_name on afl.deployment_version (name, number);

insert into afl.deployment_version (name, program, deployed_at)
select d.name, d.program, d.deployed_at from afl.deployment d order by d.deployed_at;
