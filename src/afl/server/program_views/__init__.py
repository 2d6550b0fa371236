"""Programs as the API tells of them: what can be run, who serves it, and what the compiler says."""
