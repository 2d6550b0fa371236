"""Mailboxes in Redis: each operation is one script, which the server runs as a whole.

`keys` names what lies where, `scripts` runs the files in `lua/`, `packing` turns answers into
values, `settings` has what all processes share, `doorbell` wakes who waits,
`errands` does what callers do not wait for.
The scripts never write a payload anew, since Lua would change it: they hand bytes on. The clock is
the server's; a client's clock is never read.
"""
