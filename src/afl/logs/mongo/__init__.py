"""The schema of `afl.logs.mongo_store`, beside that of the kernel's store.

    log_home     under which name this database is known to a NATS server; one document
    log_spool    up to where the spools of workers are stored
    log_stream   what one attempt at a step writes under one name in one process
    log_chunk    many lines of one stream, as they travelled, or as many missing ones

The index `log_chunk_head` has all but the lines themselves: whoever looks for chunks does not read
bodies. What is missing of a run is in the chunks of the kind 2 and in `lost` of its streams.
"""
