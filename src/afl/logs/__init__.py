"""Log lines: what steps, handlers and processes say, kept so that none is lost without a word.

A line goes to a file on the worker's disk first, from there to the database, through JetStream
where there is NATS, and leaves the disk when the database has it.

    model        streams, lines, chunks of them, and what travels: slices of a spool
    codec        lines and slices as bytes
    frames       records of a spool as bytes
    redacting    secrets are taken out before anything is written
    applying     what a slice adds to what is stored: each line once, each hole as a gap
    merging      the lines of many streams in the order of their times
    segments     the files of a spool
    spool        many streams, many threads, one folder, one process
    leftovers    spools of workers that died
    keeping      all of that for one process
    shipping     from a spool to the store, and back with what may be freed
    jetstream    the road through NATS
    sink         the end of that road
    store        the port of stores; `memory_store`, `postgres_store`, `mongo_store`
    reading      stored lines, then those that come
"""
