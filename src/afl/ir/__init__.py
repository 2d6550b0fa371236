"""The compiled program: the only thing that the language and the engines share.

`model` is what a program is made of, `types` the types of its values, `codec` its stored form
(versioned JSON, described by `program.schema.json`), `digest` the content hash that names it. Pure
data: this package imports nothing but `afl.base`.
"""
