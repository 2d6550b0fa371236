"""One module per command; each has a `command`, which `afl.cli.main` loads when it is called."""
