"""What Recollect costs in seconds, megabytes and tokens: `scripts/bench`, `scripts/first-hour` and others."""
