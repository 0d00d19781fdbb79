"""The server of a team: every operation over HTTP for whoever holds a token."""
