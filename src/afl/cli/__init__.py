"""The `afl` command.

The walk: `main` (the table of commands, the entry), `framework` (how commands are loaded and how
they end), `exit_codes`, `errors`, `failures` (an error to words and an exit code), `terminal`
(stdout is data, stderr is talk), `sources` (arguments to AFL texts), `reports` (diagnostics in all
formats), then one module per command in `commands`. `graph` and `catalogue` make what `afl graph`
and `afl doc` print; `running` is what the commands on runs share, `live` shows a run as it goes on,
`doctoring` has the checks of `afl doctor`.

Invariants: `afl --help` loads no command, no part of the language and no rich; a command writes
through `Terminal` only. May import everything below it; nothing but `afl.__main__` imports it.
"""
