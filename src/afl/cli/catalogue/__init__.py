"""A catalogue of what AFL sources declare, for people and for tools.

`model` collects it from a compilation, `callers` finds who uses what; `markdown` and `json_form`
write it. Everything here is pure and gives the same text for the same sources.
"""
