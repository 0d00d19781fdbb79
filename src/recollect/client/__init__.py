"""The side that asks: one transport to the daemon of this machine or the server of a team, and the daemon's launch."""
