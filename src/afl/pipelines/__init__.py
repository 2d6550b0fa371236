"""YAML pipelines: a second way to write a flow of commands, which compiles to the same program.

A file is a workflow, a task is a step that runs a command, `depends` is an `after`. `nodes` reads
the text and keeps where everything stands, `reading` makes a `model.Pipeline` of it with the help
of `fields`, `ordering` looks at who waits for whom, `crons` at when it starts, `lowering` makes the
program, and `problems` is what all of them have to say. Nothing of this ever makes a Python object
because a text asks for it.

Entry point: `compiling.compile_pipeline`. Needs the extra `pipelines`. May import: ir and base.
"""
