"""Who speaks in the tests: the user, the team and the project of the `settings` fixture."""

from recollect import Caller
from recollect.domain.enums import Sensitivity, owned

ADA = Caller(user="ada", team="crew", project="engine")


def own(*levels: str, user: str = ADA.user) -> tuple[str, ...]:
    """Return levels of sensitivity as they are stored for what is a user's own."""
    return tuple(owned(level, user) for level in levels)


EVERY_LEVEL = own(*Sensitivity)
"""All that Ada may see where she lets in every level."""
