"""What both the daemon and the server of a team need to answer over HTTP."""
