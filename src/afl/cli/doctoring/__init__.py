"""The checks of `afl doctor`.

`findings` is what a check answers with, `surroundings` looks at this machine and what it can reach,
`workings` at what is deployed, served and stuck.
"""
