"""Checks of an installation, for `afl doctor` and for the page of a server's health.

`findings` is what a check answers with, `workings` looks at what is deployed, served and stuck,
`tenants` at what keeps those apart. Nothing here needs the libraries of the server.
"""
