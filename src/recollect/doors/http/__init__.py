"""One HTTP application over an open store: the local daemon and the server of a team are the same but for who asks."""
