"""Recollect: durable, searchable memory for AI agents and their teams."""
