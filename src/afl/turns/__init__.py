"""Turns: agents that think with a model, and whose every step is durable.

A turn is a task of kind `turn`. Its own box is its journal: what it was asked, what the model said,
which tools it called and what they answered. One request to the model is one commit. What a worker
needs to go on is read from those cards and the kernel's calls, so a turn can be killed at any
moment and waits for hours at the cost of its rows.

`model` has the values, `cards` how they are kept; `machine` decides, purely; `loop` does the IO
of one claim, `worker` claims. `ports` says what they need from outside: models, tools, a store.
May import: kernel, ir, base.
"""
