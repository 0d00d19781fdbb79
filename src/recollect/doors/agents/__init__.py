"""Registers Recollect with the programs that run agents: their MCP configuration and their instruction files."""
