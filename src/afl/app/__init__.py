"""The SDK and the composition root: settings to stores to services.

    App       handlers by facet, and the worker that serves them
    Context   what a handler is handed beside its arguments
    Client    submits runs and looks after them; `Run` is one of them
    stores    a store from a URL; nothing else constructs a driver

`from afl import App, Client, Context, Retry, Permanent, Skip` is the way in. Importing this package
connects to nothing.
"""
