"""The parts of `afl.runtime.mongo_store`, on the database of the kernel's MongoDB store.

    runs, forgetting       runs, and how they go
    steps, changes         steps, and what one turn changes of them
    tallying, windows      how many steps there are, and parts of them
    searching              lists of runs
    history, people        what is read of the kernel's documents too
    signals                events from outside
    shelves, sources       programs, their files, memos
    documents              values to documents, and back
    migrate                the kernel's migrations and those of this package, as one history

The id of what belongs to a run begins with the run's id and a colon, so all of it is one stretch of
the index of ids. Times are those of the server's clock, in microseconds.
"""
