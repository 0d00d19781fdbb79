"""Who speaks in the tests: the user, the team and the project of the `settings` fixture."""

from recollect import Caller

ADA = Caller(user="ada", team="crew", project="engine")
