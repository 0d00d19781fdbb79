"""`python -m recollect`: the command where the folder of scripts is not on the search path."""

from __future__ import annotations

from recollect.doors.entry import main

if __name__ == "__main__":
    main()
