"""The load of a team on real replicas of the server, as `scripts/load` puts it."""
