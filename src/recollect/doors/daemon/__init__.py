"""The local daemon and the way to it: one process owns a store, everybody else is a thin client."""
