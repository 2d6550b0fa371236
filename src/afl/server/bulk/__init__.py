"""Actions on many runs: which runs, and the jobs that do it in the background.

A job is a row. Whoever has it goes over its runs, the newest first, and notes how far it has come;
so a server that dies leaves its jobs to others, which go on where it was.
"""
