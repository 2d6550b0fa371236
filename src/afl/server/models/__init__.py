"""What travels over the HTTP API: the shapes that the OpenAPI document publishes."""
