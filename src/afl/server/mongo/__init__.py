"""The schema of `afl.server.mongo_store`, beside that of the kernel's store.

    server_token    tokens of the API, each with a digest of its secret alone
    server_audit    what was done, and what was refused
    server_view     filters with names
    server_hook     web hooks
    server_job      bulk actions
    server_answer   answers to requests that may be repeated
    server_secret   the key that signs links; one document

They are few and small, so none of them is spread over shards. `rows` has what comes out of them.
"""
