"""A project that is being worked on: what is in it, serving it, and serving it anew when a file is
saved. `afl dev` puts the parts together."""
