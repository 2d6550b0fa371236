"""What people do to runs: what it would come to, doing it, and doing it once."""
