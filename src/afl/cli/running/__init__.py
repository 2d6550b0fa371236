"""What the commands that run flows have in common.

    options      options that several commands take, and the types of their values
    connection   the store that a command works on, and what goes wrong with it in words
    workflows    which workflow is meant, and the inputs that it is given
    serving      handlers from a module, and what a program needs that they do not serve
    logs         what handlers log, as talk
    groups       groups of commands under a noun
    bulk         verbs that are done to many runs at once
    selection    which runs a command is about: by id, or by filter
    outcomes     how a run has ended: its outputs, or the step that failed and its line
    tables       rows as columns

May import everything below the commands; the commands import it.
"""
