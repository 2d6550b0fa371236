"""The checks of `afl doctor` that only it has: `surroundings` looks at this machine and what it can
reach. `afl.server.checks` has the others.
"""
