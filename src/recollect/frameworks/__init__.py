"""Recollect where frameworks for agents expect a memory; each module needs the library it is named for."""
