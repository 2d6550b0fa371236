"""Mistakes as data, and the ways to show them.

`model` is what a diagnostic is, `codes` the registry, `reporter` the way to make one, `suggest` the
did-you-mean, and `render_human`, `render_json` and `render_sarif` turn a list of them into text.
"""
