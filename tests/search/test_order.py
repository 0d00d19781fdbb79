"""Order: memories move behind what goes ahead of them, and all else keeps its place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.search.order import behind

quick = hypothesis_settings(deadline=None, database=None)


@quick
@given(st.permutations(range(8)), st.dictionaries(st.integers(4, 7), st.sets(st.integers(0, 3)), max_size=4))
def test_what_gives_way_stands_behind_and_all_else_as_before(order: list[int], ahead: dict[int, set[int]]) -> None:
    """Each memory stands behind all that go ahead of it, and those that give way to nothing keep their order."""
    found = behind(order, ahead)
    assert sorted(found) == sorted(order)
    assert [one for one in found if not ahead.get(one)] == [one for one in order if not ahead.get(one)]
    assert all(found.index(high) < found.index(low) for low, some in ahead.items() for high in some)
