"""Processes: commands run as children of a worker, with bounded memory and a certain end.

`process.run` runs one command and answers with its `Outcome`. A small process of its own, `keeper`,
stands between the worker and the command: it ends the command and all that it has started when the
worker says so, and when the worker is gone. `pump` reads both pipes at once, `lines` cuts what it
reads into lines for a log, `capture` keeps the beginning and the end of it. `sandbox` runs a
command where it sees nothing of this machine, `python` does so with Python code; `artifacts` keeps
files by their hash.

Linux only. May import: kernel, ir, base.
"""
