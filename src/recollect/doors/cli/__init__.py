"""The command line: `thin.py` hands words to the daemon, `main.py` is the whole of it, for everything else."""
