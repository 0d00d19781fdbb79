"""Whether a memory helps an agent: later tasks, some of which need what an earlier session learnt. `scripts/worth`."""
