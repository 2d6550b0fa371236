"""Work on a server instead of on its database: the same operations, over its HTTP API."""
