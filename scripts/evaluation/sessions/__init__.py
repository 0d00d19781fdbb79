"""What is kept of labelled sessions of coding agents, and what later prompts get: `scripts/eval-sessions`."""
